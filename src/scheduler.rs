//! [`Scheduler`]: runs background jobs when they are due. One thread waits for the next job that is
//! due. Each run has a thread of its own, so that a slow job delays no other job. The function of a
//! job returns the time until its next run. A [`JobWaker`] makes its job due at once.

use crate::locks::lock;
use crate::threads::spawn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The wait before a job is tried again for which no thread could be started.
const SPAWN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the thread waits if no job is due.
const IDLE_WAIT: Duration = Duration::from_secs(3_600);

/// The jobs and the thread that waits for them. Both end when this is dropped, which waits for no
/// run.
pub struct Scheduler(Arc<SchedulerInner>);

/// Makes a job due. It does nothing when the scheduler has ended.
#[derive(Clone)]
pub struct JobWaker {
    scheduler: Arc<SchedulerInner>,
    job: usize,
}

#[derive(Default)]
struct SchedulerInner {
    jobs: Mutex<JobList>,
    changed: Condvar,
}

#[derive(Default)]
struct JobList {
    list: Vec<Job>,
    is_stopped: bool,
}

type JobFn = Box<dyn FnMut(&JobWaker) -> Option<Duration> + Send>;

struct Job {
    name: &'static str,
    /// `None` until it is woken.
    due: Option<Instant>,
    is_running: bool,
    run: Arc<Mutex<JobFn>>,
}

impl Scheduler {
    /// Starts the thread, without a job.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start() -> io::Result<Scheduler> {
        let scheduler = Arc::<SchedulerInner>::default();
        let state = scheduler.clone();
        spawn("scheduler", move || state.run_until_stopped())?;
        Ok(Scheduler(scheduler))
    }

    /// Adds a job, which is due at once. `run` returns the time until the job is due again, or
    /// `None` if only its [`JobWaker`] makes it due. It never runs twice at the same time, and a wake
    /// during a run causes another one. A job that panics does not run again.
    pub fn add(
        &self,
        name: &'static str,
        run: impl FnMut(&JobWaker) -> Option<Duration> + Send + 'static,
    ) -> JobWaker {
        let job = self.add_on_demand_job(name, run);
        job.wake();
        job
    }

    /// Adds a job that runs only when it is woken.
    pub fn add_on_demand_job(
        &self,
        name: &'static str,
        run: impl FnMut(&JobWaker) -> Option<Duration> + Send + 'static,
    ) -> JobWaker {
        let mut jobs = lock(&self.0.jobs);
        jobs.list.push(Job {
            name,
            due: None,
            is_running: false,
            run: Arc::new(Mutex::new(Box::new(run))),
        });
        JobWaker {
            scheduler: self.0.clone(),
            job: jobs.list.len() - 1,
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let mut guard = lock(&self.0.jobs);
        guard.is_stopped = true;
        let jobs = std::mem::take(&mut guard.list);
        self.0.changed.notify_one();
        drop(guard);
        // Without the lock: what a job owns may wake another one when it is dropped.
        drop(jobs);
    }
}

impl JobWaker {
    /// Makes the job due now.
    pub fn wake(&self) {
        self.update_job(|job| job.due = Some(Instant::now()));
    }

    /// Plans the next run after one has ended.
    fn schedule_next_run(&self, pause: Option<Duration>) {
        let next = pause.and_then(|pause| Instant::now().checked_add(pause));
        self.update_job(|job| {
            job.is_running = false;
            // It may have been woken meanwhile.
            job.due = job.due.into_iter().chain(next).min();
        });
    }

    fn update_job(&self, update: impl FnOnce(&mut Job)) {
        if let Some(job) = lock(&self.scheduler.jobs).list.get_mut(self.job) {
            update(job);
            self.scheduler.changed.notify_one();
        }
    }
}

impl SchedulerInner {
    /// Starts jobs as they become due, until the scheduler is dropped.
    fn run_until_stopped(self: Arc<SchedulerInner>) {
        let mut jobs = lock(&self.jobs);
        while !jobs.is_stopped {
            let wait = self.start_due_jobs(&mut jobs.list).unwrap_or(IDLE_WAIT);
            let woken = self.changed.wait_timeout(jobs, wait);
            jobs = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts the runs that are due. Returns the time until the next one is.
    fn start_due_jobs(self: &Arc<SchedulerInner>, jobs: &mut [Job]) -> Option<Duration> {
        let now = Instant::now();
        for (place, job) in jobs.iter_mut().enumerate() {
            if job.is_running || job.due.is_none_or(|due| due > now) {
                continue;
            }
            let waker = JobWaker {
                scheduler: self.clone(),
                job: place,
            };
            let run = job.run.clone();
            let started = spawn(job.name, move || {
                let pause = lock(&run)(&waker);
                waker.schedule_next_run(pause);
            });
            job.is_running = started.is_ok();
            job.due = started.err().map(|error| {
                tracing::warn!(job = job.name, %error, "cannot start a thread; trying again in a second");
                now + SPAWN_RETRY_DELAY
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

    fn receive<T>(runs: &Receiver<T>) -> T {
        runs.recv_timeout(LATE).expect("a run")
    }

    /// A job that sends, and is due again after `pause`.
    fn add_sending_job(
        scheduler: &Scheduler,
        sender: Sender<Instant>,
        pause: Option<Duration>,
    ) -> JobWaker {
        scheduler.add("sending", move |_| {
            let _ = sender.send(Instant::now());
            pause
        })
    }

    #[test]
    fn job_runs_at_once_and_again_after_its_pause() {
        let scheduler = Scheduler::start().expect("a thread");
        let (sender, runs) = channel();
        add_sending_job(&scheduler, sender, Some(SOON));
        let first = receive(&runs);
        assert!(receive(&runs) - first >= SOON);
        receive(&runs);
    }

    #[test]
    fn job_without_a_time_runs_when_woken() {
        let scheduler = Scheduler::start().expect("a thread");
        let (sender, runs) = channel();
        let waker = add_sending_job(&scheduler, sender, None);
        receive(&runs);
        assert!(runs.recv_timeout(SOON * 4).is_err());
        waker.wake();
        receive(&runs);
    }

    #[test]
    fn stuck_job_delays_no_other() {
        let scheduler = Scheduler::start().expect("a thread");
        let (release, released) = channel::<()>();
        scheduler.add("stuck", move |_| {
            let _ = released.recv();
            None
        });
        let (sender, runs) = channel();
        add_sending_job(&scheduler, sender, Some(SOON));
        for _ in 0..3 {
            receive(&runs);
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
        receive(&runs);
        waker.wake();
        waker.wake();
        assert!(runs.recv_timeout(SOON * 4).is_err(), "one run at a time");
        drop(release);
        receive(&runs);
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
        receive(&runs);
        drop(scheduler);
        drop(release);
        // The run ends, and the job and its sender with it.
        assert!(matches!(
            runs.recv_timeout(LATE),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        ));
        waker.wake();
    }
}
