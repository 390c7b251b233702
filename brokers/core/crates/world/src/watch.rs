//! A value that is watched: as `tokio::sync::watch`, but whoever waits is woken in the order of
//! waiting. The library wakes in a random order, so the same seed would give several histories.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::Notify;

/// The sender is gone, and no value comes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what was watched has ended")]
pub struct Ended;

/// The value as it is now. It is not kept while anything is awaited.
pub struct Now<'a, T>(RwLockReadGuard<'a, Versioned<T>>);

impl<T> Deref for Now<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

#[derive(Debug)]
struct Versioned<T> {
    value: T,
    /// How often it was sent.
    version: u64,
    has_ended: bool,
}

#[derive(Debug)]
struct Shared<T> {
    state: RwLock<Versioned<T>>,
    changed: Notify,
}

/// Sends values to those who watch.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// Watches the values of a sender.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that was seen last.
    seen: u64,
}

/// A sender with a first value, and a receiver that has seen it.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Sender<T> {
    /// A sender with a first value.
    pub fn new(value: T) -> Self {
        let state = Versioned { value, version: 0, has_ended: false };
        Self(Arc::new(Shared { state: RwLock::new(state), changed: Notify::new() }))
    }

    /// A receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        let seen = self.0.state.read().version;
        Receiver { shared: Arc::clone(&self.0), seen }
    }

    /// The present value.
    pub fn borrow(&self) -> Now<'_, T> {
        Now(self.0.state.read())
    }

    /// Sends another value; returns the one before.
    pub fn send_replace(&self, value: T) -> T {
        let mut before = value;
        self.send_modify(|current| std::mem::swap(current, &mut before));
        before
    }

    /// Changes the value, and sends it.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value, and sends it where `modify` says so; returns whether it does.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut state = self.0.state.write();
        let is_modified = modify(&mut state.value);
        state.version += u64::from(is_modified);
        drop(state);
        if is_modified {
            self.0.changed.notify_waiters();
        }
        is_modified
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.write().has_ended = true;
        self.0.changed.notify_waiters();
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Receiver<T> {
    /// The present value.
    pub fn borrow(&self) -> Now<'_, T> {
        Now(self.shared.state.read())
    }

    /// The present value, which counts as seen.
    pub fn borrow_and_update(&mut self) -> Now<'_, T> {
        let state = self.shared.state.read();
        self.seen = state.version;
        Now(state)
    }

    /// Waits until a value was sent that was not seen. Cancel safe.
    ///
    /// # Errors
    /// [`Ended`] where none was, and none comes.
    pub async fn changed(&mut self) -> Result<(), Ended> {
        let seen = self.seen;
        let shared = Arc::clone(&self.shared);
        self.seen = wait(&shared, |state| state.version != seen).await?.0.version;
        Ok(())
    }

    /// Waits until a value holds, which counts as seen. Cancel safe.
    ///
    /// # Errors
    /// [`Ended`] where the last value does not, and none comes.
    pub async fn wait_for(
        &mut self,
        mut holds: impl FnMut(&T) -> bool,
    ) -> Result<Now<'_, T>, Ended> {
        let now = wait(&self.shared, |state| holds(&state.value)).await?;
        self.seen = now.0.version;
        Ok(now)
    }
}

async fn wait<T>(
    shared: &Shared<T>,
    mut is_awaited: impl FnMut(&Versioned<T>) -> bool,
) -> Result<Now<'_, T>, Ended> {
    loop {
        // Before the look: what is sent after it wakes this.
        let changed = shared.changed.notified();
        {
            let state = shared.state.read();
            if is_awaited(&state) {
                return Ok(Now(state));
            }
            if state.has_ended {
                return Err(Ended);
            }
        }
        changed.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_receiver_sees_changes_once_and_the_end() {
        let (sender, mut receiver) = channel(1);
        let mut other = receiver.clone();
        assert_eq!(sender.send_replace(2), 1);
        sender.send_modify(|value| *value += 1);
        assert!(!sender.send_if_modified(|_| false));
        receiver.changed().await.unwrap();
        assert_eq!(*receiver.borrow(), 3);
        assert_eq!(*other.borrow_and_update(), 3);
        drop(sender);
        assert_eq!(receiver.changed().await, Err(Ended));
        assert_eq!(other.changed().await, Err(Ended));
        assert_eq!(*other.wait_for(|value| *value == 3).await.unwrap(), 3);
        assert!(other.wait_for(|value| *value == 4).await.is_err());
    }

    #[tokio::test]
    async fn who_waits_is_woken_in_order() {
        let sender = Sender::new(0);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (mut receiver, woken) = (sender.subscribe(), Arc::clone(&woken));
                tokio::spawn(async move {
                    receiver.wait_for(|value| *value == 1).await.unwrap();
                    woken.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        sender.send_replace(1);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
