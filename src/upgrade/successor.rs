//! The next process's side of an upgrade, in which one crawlgate process replaces a running one.
//! [`PendingTakeover`] talks with the running process until the next process may serve. After that,
//! [`Predecessor`] follows the previous process to its end.

use super::channel::{ChannelError, ProcessChannel};
use super::inherited::InheritedListeners;
use super::messages::{PredecessorMessage, SuccessorMessage};
use crate::facts::Fact;
use crate::settings::ListenAddress;
use PredecessorMessage::*;
use SuccessorError::*;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// Why this process does not take over.
#[derive(Debug, thiserror::Error)]
pub enum SuccessorError {
    /// Nobody but a running crawlgate may set the flag.
    #[error(
        "no crawlgate hands over to this process. The flag --successor is only for \"crawlgate upgrade\": {0}"
    )]
    NotStarted(io::Error),
    /// The channel failed, or the previous process has ended.
    #[error("the old process does not hand over: {0}")]
    Channel(#[from] ChannelError),
    /// The previous process sent an unexpected message.
    #[error("the old process does not hand over: its answer was not understood")]
    OutOfTurn,
    /// Standard output and standard error cannot be taken over.
    #[error("cannot write where the old process writes: {0}")]
    Output(io::Error),
}

/// The channel to the running process, before this one serves.
pub struct PendingTakeover {
    channel: ProcessChannel,
    /// The addresses of the running process's listeners.
    pub listeners: Vec<ListenAddress>,
    /// Its state directory.
    pub state: Option<PathBuf>,
    /// Its control socket.
    pub control: Option<PathBuf>,
    /// The facts that it recorded after it closed the state directory.
    facts: Vec<Fact>,
}

/// What this process takes over from the running one.
#[derive(Default)]
pub struct TakenOverState {
    /// The passed listeners, and those that this process has bound.
    pub inherited: InheritedListeners,
    /// The lock of the state directory.
    pub state_lock: Option<OwnedFd>,
    /// The lock of the control socket.
    pub control_lock: Option<OwnedFd>,
}

impl PendingTakeover {
    /// Waits for the hello of the running process. Standard input is the channel.
    ///
    /// # Errors
    /// Standard input is not such a channel, or another message comes first.
    pub fn from_stdin() -> Result<PendingTakeover, SuccessorError> {
        let input = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(NotStarted)?;
        let channel = ProcessChannel::from_fd(input).map_err(NotStarted)?;
        match channel.receive(None)? {
            (
                Hello {
                    listeners,
                    state,
                    control,
                },
                _,
            ) => Ok(PendingTakeover {
                channel,
                listeners,
                state,
                control,
                facts: Vec::new(),
            }),
            _ => Err(OutOfTurn),
        }
    }

    /// Says that this process is ready, and receives what it takes over. `takes` are the wanted
    /// listeners; they are added to `inherited`, which this process has bound.
    ///
    /// # Errors
    /// The process before has ended, or sends a message out of turn.
    pub fn take_over(
        &mut self,
        takes: Vec<ListenAddress>,
        takes_control: bool,
        mut inherited: InheritedListeners,
    ) -> Result<TakenOverState, SuccessorError> {
        self.channel.send(
            &SuccessorMessage::Ready {
                takes,
                takes_control,
            },
            &[],
        )?;
        loop {
            match self.channel.receive(None)? {
                (Listeners { listeners }, descriptors) => {
                    for (passed, descriptor) in listeners.into_iter().zip(descriptors) {
                        inherited.add_handed_over(passed, descriptor);
                    }
                }
                (FactRecorded { fact }, _) => self.facts.push(fact),
                (Unknown, _) => {}
                (LocksPassed { state, control }, descriptors) => {
                    let mut descriptors = descriptors.into_iter();
                    let state_lock = if state { descriptors.next() } else { None };
                    let control_lock = if control { descriptors.next() } else { None };
                    return Ok(TakenOverState {
                        inherited,
                        state_lock,
                        control_lock,
                    });
                }
                _ => return Err(OutOfTurn),
            }
        }
    }

    /// Says that everything is open, and waits until it may serve. From then on this process has the
    /// standard output and standard error of the previous one.
    ///
    /// # Errors
    /// The process before has ended, or sends a message out of turn.
    pub fn wait_to_serve(mut self) -> Result<Predecessor, SuccessorError> {
        self.channel.send(&SuccessorMessage::Opened, &[])?;
        loop {
            match self.channel.receive(None)? {
                (FactRecorded { fact }, _) => self.facts.push(fact),
                (Unknown, _) => {}
                (StartServing, descriptors) => {
                    if let [output, errors] = descriptors.as_slice() {
                        rustix::stdio::dup2_stdout(output)
                            .and_then(|()| rustix::stdio::dup2_stderr(errors))
                            .map_err(|error| Output(error.into()))?;
                    }
                    return Ok(Predecessor {
                        channel: self.channel,
                        facts: self.facts,
                    });
                }
                _ => return Err(OutOfTurn),
            }
        }
    }
}

/// The previous process, which still answers requests.
pub struct Predecessor {
    pub channel: ProcessChannel,
    facts: Vec<Fact>,
}

impl Predecessor {
    /// Follows the previous process until its farewell, and returns how many connections it cut off;
    /// `None` if it ends without one or sends an unexpected message. `on_leaving` is called once: when
    /// it accepts no connections any more (with the time for which it still answers the open ones, if
    /// it says so), or ends. `on_fact` gets each fact that it recorded after
    /// it closed the state directory.
    pub fn follow(
        self,
        on_leaving: impl FnOnce(Option<Duration>),
        mut on_fact: impl FnMut(Fact),
    ) -> Option<usize> {
        let mut on_leaving = Some(on_leaving);
        for fact in self.facts {
            on_fact(fact);
        }
        let cut_off = loop {
            match self.channel.receive(None) {
                Ok((FactRecorded { fact }, _)) => on_fact(fact),
                Ok((Leaving { drain }, _)) => {
                    if let Some(on_leaving) = on_leaving.take() {
                        on_leaving(drain);
                    }
                }
                Ok((Farewell { cut_off }, _)) => break Some(cut_off),
                Ok((Unknown, _)) => {}
                Ok(_) | Err(_) => break None,
            }
        };
        // It may have died before it left.
        if let Some(on_leaving) = on_leaving {
            on_leaving(None);
        }
        cut_off
    }
}
