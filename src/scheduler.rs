//! [`Scheduler`]: runs jobs when they are due. One thread waits for the job that is due next, and
//! each run has a thread of its own, so that a job that takes long delays no other one. A run
//! returns when the job is due again; a [`Waker`] makes it due at once.

use crate::locks::lock;
use crate::threads::spawn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a job waits if the system starts no thread for it.
const WITHOUT_THREAD: Duration = Duration::from_secs(1);
/// How long the thread waits if no job is due.
const WITHOUT_JOB: Duration = Duration::from_secs(3_600);

/// The jobs and the thread that waits for them. Both end when this is dropped, which waits for no
/// run.
pub struct Scheduler(Arc<Shared>);

/// Makes a job due. It does nothing when the scheduler has ended.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
    job: usize,
}

#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    changed: Condvar,
}

#[derive(Default)]
struct Plan {
    jobs: Vec<Job>,
    is_over: bool,
}

type Run = Box<dyn FnMut(&Waker) -> Option<Duration> + Send>;

struct Job {
    name: &'static str,
    /// `None` until it is woken.
    due: Option<Instant>,
    is_running: bool,
    run: Arc<Mutex<Run>>,
}

impl Scheduler {
    /// Starts the thread, without a job.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start() -> io::Result<Scheduler> {
        let shared = Arc::<Shared>::default();
        let followed = shared.clone();
        spawn("scheduler", move || followed.follow())?;
        Ok(Scheduler(shared))
    }

    /// Adds a job, which is due at once. `run` returns the time until the job is due again, or
    /// `None` if only its [`Waker`] makes it due. It never runs twice at the same time, and a wake
    /// during a run causes another one. A job that panics does not run again.
    pub fn add(
        &self,
        name: &'static str,
        run: impl FnMut(&Waker) -> Option<Duration> + Send + 'static,
    ) -> Waker {
        let job = self.add_idle(name, run);
        job.wake();
        job
    }

    /// Adds a job that is due when it is woken.
    pub fn add_idle(
        &self,
        name: &'static str,
        run: impl FnMut(&Waker) -> Option<Duration> + Send + 'static,
    ) -> Waker {
        let mut plan = lock(&self.0.plan);
        plan.jobs.push(Job {
            name,
            due: None,
            is_running: false,
            run: Arc::new(Mutex::new(Box::new(run))),
        });
        Waker {
            shared: self.0.clone(),
            job: plan.jobs.len() - 1,
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let mut plan = lock(&self.0.plan);
        plan.is_over = true;
        let jobs = std::mem::take(&mut plan.jobs);
        self.0.changed.notify_one();
        drop(plan);
        // Without the lock: what a job owns may wake another one when it is dropped.
        drop(jobs);
    }
}

impl Waker {
    /// Makes the job due now.
    pub fn wake(&self) {
        self.change(|job| job.due = Some(Instant::now()));
    }

    /// Plans the next run after one has ended.
    fn finish(&self, pause: Option<Duration>) {
        let next = pause.and_then(|pause| Instant::now().checked_add(pause));
        self.change(|job| {
            job.is_running = false;
            // It may have been woken meanwhile.
            job.due = job.due.into_iter().chain(next).min();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Job)) {
        if let Some(job) = lock(&self.shared.plan).jobs.get_mut(self.job) {
            change(job);
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    /// The work of the thread.
    fn follow(self: Arc<Shared>) {
        let mut plan = lock(&self.plan);
        while !plan.is_over {
            let wait = self.begin_due(&mut plan.jobs).unwrap_or(WITHOUT_JOB);
            let woken = self.changed.wait_timeout(plan, wait);
            plan = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts the runs that are due. Returns the time until the next one is.
    fn begin_due(self: &Arc<Shared>, jobs: &mut [Job]) -> Option<Duration> {
        let now = Instant::now();
        for (place, job) in jobs.iter_mut().enumerate() {
            if job.is_running || job.due.is_none_or(|due| due > now) {
                continue;
            }
            let waker = Waker {
                shared: self.clone(),
                job: place,
            };
            let run = job.run.clone();
            let started = spawn(job.name, move || {
                let pause = lock(&run)(&waker);
                waker.finish(pause);
            });
            job.is_running = started.is_ok();
            job.due = started.err().map(|error| {
                tracing::warn!(job = job.name, %error, "no thread can be started; trying again in a second");
                now + WITHOUT_THREAD
            });
        }
        let waiting = jobs.iter().filter(|job| !job.is_running);
        let next = waiting.filter_map(|job| job.due).min()?;
        Some(next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const SOON: Duration = Duration::from_millis(5);
    const LATE: Duration = Duration::from_secs(10);

    fn received<T>(runs: &Receiver<T>) -> T {
        runs.recv_timeout(LATE).expect("a run")
    }

    /// A job that sends, and is due again after `pause`.
    fn sending(scheduler: &Scheduler, sender: Sender<Instant>, pause: Option<Duration>) -> Waker {
        scheduler.add("sending", move |_| {
            let _ = sender.send(Instant::now());
            pause
        })
    }

    #[test]
    fn job_runs_at_once_and_again_after_its_pause() {
        let scheduler = Scheduler::start().expect("a thread");
        let (sender, runs) = channel();
        sending(&scheduler, sender, Some(SOON));
        let first = received(&runs);
        assert!(received(&runs) - first >= SOON);
        received(&runs);
    }

    #[test]
    fn job_without_a_time_runs_when_it_is_woken() {
        let scheduler = Scheduler::start().expect("a thread");
        let (sender, runs) = channel();
        let waker = sending(&scheduler, sender, None);
        received(&runs);
        assert!(runs.recv_timeout(SOON * 4).is_err());
        waker.wake();
        received(&runs);
    }

    #[test]
    fn stuck_job_delays_no_other_one() {
        let scheduler = Scheduler::start().expect("a thread");
        let (release, released) = channel::<()>();
        scheduler.add("stuck", move |_| {
            let _ = released.recv();
            None
        });
        let (sender, runs) = channel();
        sending(&scheduler, sender, Some(SOON));
        for _ in 0..3 {
            received(&runs);
        }
        drop(release);
    }

    #[test]
    fn wake_during_a_run_causes_another_run() {
        let scheduler = Scheduler::start().expect("a thread");
        let (sender, runs) = channel();
        let (release, released) = channel::<()>();
        let waker = scheduler.add("busy", move |_| {
            let _ = sender.send(());
            let _ = released.recv();
            None
        });
        received(&runs);
        waker.wake();
        waker.wake();
        assert!(runs.recv_timeout(SOON * 4).is_err(), "one run at a time");
        drop(release);
        received(&runs);
        assert!(runs.recv_timeout(SOON * 4).is_err(), "one run for both");
    }

    #[test]
    fn drop_ends_the_jobs_and_waits_for_no_run() {
        let scheduler = Scheduler::start().expect("a thread");
        let (release, released) = channel::<()>();
        let (sender, runs) = channel();
        let waker = scheduler.add("stuck", move |_| {
            let _ = sender.send(());
            let _ = released.recv();
            Some(SOON)
        });
        received(&runs);
        drop(scheduler);
        drop(release);
        // The run ends, and the job with it: nobody can send any more.
        assert!(matches!(
            runs.recv_timeout(LATE),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        ));
        waker.wake();
    }
}
