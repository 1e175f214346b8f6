//! spike main
mod data; mod model;
use eggroll::prelude::*; use burn::optim::AdamConfig; use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use data::*; use model::*;
fn arg<T: std::str::FromStr>(name:&str, d:T)->T where T::Err: std::fmt::Debug { let a:Vec<String>=std::env::args().collect(); a.iter().position(|x|*x==format!("--{name}")).map(|i|a[i+1].parse().unwrap()).unwrap_or(d) }
fn main(){ if arg("pool",0)==1 { rayon::join(run, ||()); } else { run() } }
fn run(){
  let device=Device::flex();
  let seed:u64=arg("seed",0);
  device.seed(seed);
  let mut tr=Images::read("data/mnist".as_ref(),"train").unwrap(); let val=tr.split_off(arg("validation",10000));
  let m=tr.moments(); let train=Dataset::new(&tr,m,&device); let val=Dataset::new(&val,m,&device);
  let hidden:String=arg("hidden","64".to_string()); let hidden:Vec<usize>=hidden.split(',').map(|x|x.parse().unwrap()).collect();
  let mut model=Mlp::new(tr.size,&hidden,&device);
  let gens:u64=arg("generations",2000); let lr:f64=arg("lr",0.002); let n:usize=arg("population",1024); let batch:usize=arg("batch",64);
  let sigma:f64=arg("sigma",0.02); let send:f64=arg("sigma-end",sigma);
  let mut c=EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(arg("rank",1)).with_freeze_non_matrix(arg("freeze",0)==1), AdamConfig::new().with_beta_1(arg("b1",0.9)).with_beta_2(arg("b2",0.999)).with_epsilon(1e-8)).with_population(n).with_sigma(SigmaSchedule::Cosine{initial:sigma,last:send,generations:gens})
    .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(lr,gens as usize)).with_seed(seed);
  if arg::<String>("shaping","z".into())=="rank" { c=c.with_shaping(FitnessShaping::CenteredRank) } else if arg::<String>("shaping","z".into())=="sign" { c=c.with_shaping(FitnessShaping::PairSign) }
  let chunk:usize=arg("chunk",0); if chunk>0 {c=c.with_chunk(chunk)}
  let mut s=c.init(&model);
  let mut b=Batches::new(seed,train.len(),batch);
  let t0=std::time::Instant::now(); let every:u64=arg("every",500);
  let (mut te,mut tt)=(0.,0.);
  for g in 0..gens {
    let p=s.ask(); let bt=train.select(b.rows(g));
    let t=std::time::Instant::now();
    let f=if arg("par",1)==1 { p.evaluate_parallel(|mem| { let l=model.forward(bt.images.clone()); -mem.cross_entropy(l,bt.labels.clone()) }) } else { p.evaluate(|mem| { let l=model.forward(bt.images.clone()); -mem.cross_entropy(l,bt.labels.clone()) })};
    te+=t.elapsed().as_secs_f64(); let t=std::time::Instant::now();
    model=s.tell(model,p,f).unwrap(); tt+=t.elapsed().as_secs_f64();
    if (g+1)%every==0 { let r=s.report().unwrap(); let e=(g+1)*n as u64; println!("{} {:.1}s evals {:.1}M {:.0}k/s fit {:.4} val {:.4}  eval {:.2}ms tell {:.2}ms",g+1,t0.elapsed().as_secs_f64(),e as f64/1e6,e as f64/1e3/t0.elapsed().as_secs_f64(),r.fitness_mean,model.accuracy(&val),te*1e3/(g+1) as f64,tt*1e3/(g+1) as f64); }
  }
}
