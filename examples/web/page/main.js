// The page: buttons, curve, drawing. The worker trains.
const $ = (id) => document.getElementById(id);
const members = () => 2 ** Number($('population').value);
const status = (text, failed = false) => {
  $('status').textContent = text;
  $('status').classList.toggle('failed', failed);
};
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let worker, running = false, points = [];

function setRunning(value) {
  running = value;
  $('run').textContent = running ? 'Pause' : 'Start';
}

function fail(message) {
  worker.terminate();
  setRunning(false);
  for (const id of ['run', 'reset', 'population']) $(id).disabled = true;
  status(`It stopped: ${message}. Reload the page to try again.`, true);
}

const received = {
  ready() {
    for (const id of ['run', 'reset', 'population']) $(id).disabled = false;
    status('Ready: press Start.');
  },
  progress({ accuracy, generation, seconds, rate }) {
    points.push([seconds, 100 * accuracy]);
    $('accuracy').textContent = `${(100 * accuracy).toFixed(1)} %`;
    $('generation').textContent = generation.toLocaleString('en');
    $('seconds').textContent = seconds.toFixed(1);
    if (rate) $('rate').textContent = Math.round(rate).toLocaleString('en');
    drawCurve();
  },
  read({ probabilities }) {
    const best = probabilities.indexOf(Math.max(...probabilities));
    [...$('bars').children].forEach((row, digit) => {
      row.classList.toggle('best', digit === best);
      row.querySelector('span').style.width = `${100 * probabilities[digit]}%`;
      row.querySelector('.percent').textContent = `${(100 * probabilities[digit]).toFixed(0)} %`;
    });
    $('bars').dataset.best = best;
  },
};

// Curve

/** The least of 1, 2, 5, 10, … that is not below. */
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value);
}

function drawCurve() {
  const canvas = $('curve'), scale = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  context.font = '12px system-ui, sans-serif';
  const [left, right, top, bottom] = [44, width - 12, 8, height - 24];
  const last = points.length ? points.at(-1)[0] : 0;
  const step = rounded(Math.max(last, 10) / 6);
  const end = step * Math.ceil(Math.max(last, 10) / step);
  const at = ([x, y]) => [left + (right - left) * x / end, bottom - (bottom - top) * y / 100];
  context.strokeStyle = color('--line');
  context.fillStyle = color('--soft');
  context.lineWidth = 1;
  for (const percent of [0, 25, 50, 75, 100]) {
    const [x, y] = at([0, percent]);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(right, y);
    context.stroke();
    context.textAlign = 'right';
    context.fillText(`${percent} %`, left - 6, y + 4);
  }
  for (let x = 0; x <= end + step / 2; x += step) {
    context.textAlign = x === 0 ? 'left' : x > end - step / 2 ? 'right' : 'center';
    context.fillText(`${x} s`, at([x, 0])[0], height - 6);
  }
  if (!points.length) return;
  context.strokeStyle = color('--accent');
  context.fillStyle = color('--accent');
  context.lineWidth = 2;
  context.lineJoin = 'round';
  context.beginPath();
  points.forEach((point) => context.lineTo(...at(point)));
  context.stroke();
  context.beginPath();
  context.arc(...at(points.at(-1)), 3.5, 0, 2 * Math.PI);
  context.fill();
}

// Drawing

const pad = $('pad');
const ink = pad.getContext('2d', { willReadFrequently: true });
let pen = null, isAsked = false;

function clear() {
  ink.clearRect(0, 0, pad.width, pad.height);
  worker.postMessage({ command: 'read' });
  delete $('bars').dataset.best;
  for (const row of $('bars').children) {
    row.classList.remove('best');
    row.querySelector('span').style.width = 0;
    row.querySelector('.percent').textContent = '';
  }
}

/** Asks for the drawing to be read, once per frame. */
function ask() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    const { data } = ink.getImageData(0, 0, pad.width, pad.height);
    const alpha = new Uint8Array(data.length / 4).map((_, i) => data[4 * i + 3]);
    worker.postMessage({ command: 'read', ink: alpha, width: pad.width }, [alpha.buffer]);
  });
}

function draw(event) {
  const box = pad.getBoundingClientRect();
  const to = [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
  ink.lineWidth = 22;
  ink.lineCap = 'round';
  ink.beginPath();
  ink.moveTo(...(pen ?? to));
  ink.lineTo(...to);
  ink.stroke();
  pen = to;
  ask();
}

pad.addEventListener('pointerdown', (event) => {
  pad.setPointerCapture(event.pointerId);
  draw(event);
});
pad.addEventListener('pointermove', (event) => {
  if (pen) draw(event);
});
for (const end of ['pointerup', 'pointercancel']) pad.addEventListener(end, () => { pen = null; });

// Controls

$('run').addEventListener('click', () => {
  setRunning(!running);
  worker.postMessage({ command: running ? 'run' : 'pause' });
  status(running ? 'Training…' : 'Paused.');
});
$('reset').addEventListener('click', () => {
  points = [];
  worker.postMessage({ command: 'reset' });
});
$('population').addEventListener('input', () => { $('members').textContent = members(); });
$('population').addEventListener('change', () => worker.postMessage({ command: 'population', members: members() }));
$('clear').addEventListener('click', clear);
addEventListener('resize', drawCurve);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawCurve);

for (let digit = 0; digit < 10; digit += 1) {
  const row = document.createElement('li');
  row.innerHTML = `<b>${digit}</b><div class="bar"><span></span></div><div class="percent"></div>`;
  $('bars').append(row);
}

worker = new Worker('worker.js', { type: 'module' });
worker.onmessage = ({ data }) => received[data.kind](data);
worker.onerror = (event) => fail(event.message || 'this browser cannot run it');
worker.postMessage({ command: 'start', members: members() });
drawCurve();
