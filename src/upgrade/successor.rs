//! The part of the next process in an upgrade. [`Successor`] talks with the previous process until
//! this process may serve. [`Predecessor`] then follows the previous process until it ends.

use super::channel::{Channel, ChannelError};
use super::inherited::Inherited;
use super::messages::{FromPredecessor, FromSuccessor, Memory};
use crate::facts::Fact;
use crate::settings::ListenAddress;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Why this process does not take over.
#[derive(Debug, thiserror::Error)]
pub enum SuccessorError {
    /// The flag is for the process before alone.
    #[error(
        "no crawlgate hands over to this process: `--successor` is a flag that `crawlgate upgrade` sets by itself: {0}"
    )]
    NotStarted(io::Error),
    /// The channel failed, or the process before has ended.
    #[error("the process before does not hand over: {0}")]
    Channel(#[from] ChannelError),
    /// The process before sent another message than expected.
    #[error("the process before does not hand over: it said something out of turn")]
    OutOfTurn,
    /// Standard output and standard error cannot be taken over.
    #[error("cannot write where the process before writes: {0}")]
    Output(io::Error),
}

/// This process takes over from a running one.
#[derive(Debug)]
pub struct Successor {
    channel: Channel,
    /// The listeners of the process before.
    pub listeners: Vec<ListenAddress>,
    /// Its state directory.
    pub state: Option<PathBuf>,
    /// Its control socket.
    pub control: Option<PathBuf>,
    /// What happened there since it closed the state directory.
    happened: Vec<Fact>,
}

/// What this process takes over.
#[derive(Debug, Default)]
pub struct Taken {
    /// The listeners that it takes over, and that it has bound itself.
    pub inherited: Inherited,
    /// The lock of the state directory.
    pub state_lock: Option<OwnedFd>,
    /// The lock of the control socket.
    pub control_lock: Option<OwnedFd>,
    /// What the process before remembers outside of the state directory.
    pub memory: Memory,
}

impl Successor {
    /// Waits for the greeting of the process before, which gave this one a channel as standard
    /// input.
    ///
    /// # Errors
    /// Standard input is no such channel, or another message comes first.
    pub fn greeted() -> Result<Successor, SuccessorError> {
        let input = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(SuccessorError::NotStarted)?;
        let channel = Channel::given(input).map_err(SuccessorError::NotStarted)?;
        match channel.receive(None)? {
            (
                FromPredecessor::Hello {
                    listeners,
                    state,
                    control,
                },
                _,
            ) => Ok(Successor {
                channel,
                listeners,
                state,
                control,
                happened: Vec::new(),
            }),
            _ => Err(SuccessorError::OutOfTurn),
        }
    }

    /// Says that this process is ready, and waits for what it takes over. `takes` are the listeners
    /// that it wants, `inherited` what it has bound itself, to which those passed are added. Keeps
    /// what happens at the process before meanwhile.
    ///
    /// # Errors
    /// The process before has ended, or sends a message out of turn.
    pub fn take(
        &mut self,
        takes: Vec<ListenAddress>,
        takes_control: bool,
        mut inherited: Inherited,
    ) -> Result<Taken, SuccessorError> {
        self.channel.send(
            &FromSuccessor::Ready {
                takes,
                takes_control,
            },
            &[],
        )?;
        let mut memory = Memory::default();
        loop {
            match self.channel.receive(None)? {
                (FromPredecessor::Listeners { listeners }, descriptors) => {
                    for (passed, descriptor) in listeners.into_iter().zip(descriptors) {
                        inherited.pass(passed, descriptor);
                    }
                }
                (FromPredecessor::Happened { fact }, _) => self.happened.push(fact),
                (FromPredecessor::Memory { memory: passed }, _) => memory = *passed,
                (FromPredecessor::Unknown, _) => {}
                (FromPredecessor::Yours { state, control }, descriptors) => {
                    let mut descriptors = descriptors.into_iter();
                    let state_lock = if state { descriptors.next() } else { None };
                    let control_lock = if control { descriptors.next() } else { None };
                    return Ok(Taken {
                        inherited,
                        state_lock,
                        control_lock,
                        memory,
                    });
                }
                _ => return Err(SuccessorError::OutOfTurn),
            }
        }
    }

    /// Says that everything is open, and waits for the word to go. From then on this process writes
    /// where the process before does, if that passed its two outputs.
    ///
    /// # Errors
    /// The process before has ended, or sends a message out of turn.
    pub fn opened(mut self) -> Result<Predecessor, SuccessorError> {
        self.channel.send(&FromSuccessor::Opened, &[])?;
        loop {
            match self.channel.receive(None)? {
                (FromPredecessor::Happened { fact }, _) => self.happened.push(fact),
                (FromPredecessor::Unknown, _) => {}
                (FromPredecessor::Go, descriptors) => {
                    if let [output, errors] = descriptors.as_slice() {
                        rustix::stdio::dup2_stdout(output)
                            .and_then(|()| rustix::stdio::dup2_stderr(errors))
                            .map_err(|error| SuccessorError::Output(error.into()))?;
                    }
                    return Ok(Predecessor {
                        channel: self.channel,
                        happened: self.happened,
                    });
                }
                _ => return Err(SuccessorError::OutOfTurn),
            }
        }
    }
}

/// The process before, which still answers requests.
#[derive(Debug)]
pub struct Predecessor {
    /// The channel to it.
    pub channel: Channel,
    happened: Vec<Fact>,
}

impl Predecessor {
    /// Follows the process before until its farewell, and returns how many connections it cut off;
    /// `None` if it ends without one or sends a message out of turn. `left` is called once: when it
    /// accepts no connection any more, at the latest at the end. `happened` is called for each fact
    /// of it since it closed the state directory.
    pub fn follow(self, left: impl FnOnce(), mut happened: impl FnMut(Fact)) -> Option<usize> {
        let mut left = Some(left);
        for fact in self.happened {
            happened(fact);
        }
        let cut_off = loop {
            match self.channel.receive(None) {
                Ok((FromPredecessor::Happened { fact }, _)) => happened(fact),
                Ok((FromPredecessor::Leaving, _)) => {
                    if let Some(left) = left.take() {
                        left();
                    }
                }
                Ok((FromPredecessor::Farewell { cut_off }, _)) => break Some(cut_off),
                Ok((FromPredecessor::Unknown, _)) => {}
                // A message out of turn, or a failure. The process before cannot be asked to repeat
                // it.
                Ok(_) | Err(_) => break None,
            }
        };
        // One that dies leaves as well.
        if let Some(left) = left {
            left();
        }
        cut_off
    }
}
