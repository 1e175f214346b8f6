// Trains in a thread of its own, so that the page always answers.
import init, { Trainer, draws_the_same_noise } from './eggroll_web.js';

/** Milliseconds of training between two looks at messages, and between two reports. */
const SLICE = 40;
const REPORT = 500;

let file, trainer, population, running = false;
let seconds = 0, evaluated = 0;
let sinceReport = { ms: 0, members: 0 };
let drawing = null;

async function digits() {
  const response = await fetch('digits.bin');
  if (!response.ok) throw new Error(`digits.bin: ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  // Some servers unpack it on the way.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

function begin() {
  trainer?.free();
  trainer = new Trainer(file, population);
  seconds = 0;
  evaluated = 0;
  sinceReport = { ms: 0, members: 0 };
}

function report() {
  const before = performance.now();
  const accuracy = trainer.accuracy();
  seconds += (performance.now() - before) / 1000;
  const { ms, members } = sinceReport;
  sinceReport = { ms: 0, members: 0 };
  postMessage({ kind: 'progress', accuracy, generation: trainer.generation, seconds, evaluated, rate: ms ? 1000 * members / ms : null });
  read();
}

function read() {
  if (drawing && trainer) postMessage({ kind: 'read', probabilities: trainer.read(drawing.ink, drawing.width) });
}

function slice() {
  if (!running) return;
  const begun = performance.now();
  let ms = 0;
  do {
    trainer.step();
    evaluated += population;
    sinceReport.members += population;
    ms = performance.now() - begun;
  } while (ms < SLICE);
  seconds += ms / 1000;
  sinceReport.ms += ms;
  if (sinceReport.ms >= REPORT) report();
  setTimeout(slice);
}

const commands = {
  run() {
    if (running) return;
    running = true;
    slice();
  },
  pause() {
    running = false;
    report();
  },
  reset() {
    begin();
    report();
  },
  population({ members }) {
    population = members;
    trainer.set_population(members);
  },
  read({ ink, width }) {
    drawing = ink && { ink, width };
    read();
  },
};

/** An error in a promise reaches the page as any other. */
const thrown = (error) => setTimeout(() => { throw error; });

async function start(members) {
  population = members;
  [file] = await Promise.all([digits(), init()]);
  begin();
  if (!draws_the_same_noise()) throw new Error('noise has other bits here than elsewhere');
  postMessage({ kind: 'ready' });
  report();
}

onmessage = ({ data }) => {
  if (data.command === 'start') start(data.members).catch(thrown);
  else commands[data.command](data);
};
