//! What the device reports, as the failures the rest of Shoal knows.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::Failure;
use shoal_protocol::id::clip;
use shoal_protocol::limit::MAX_TEXT_BYTES;
use wgpu::{Device, Error, ErrorFilter, ErrorScopeGuard};

/// Whether, and why, the device is gone.
#[derive(Clone, Default)]
pub(crate) struct Lost(Arc<Mutex<Option<String>>>);

impl Lost {
    pub(crate) fn watch(&self, device: &Device) {
        let lost = self.clone();
        device.set_device_lost_callback(move |reason, message| {
            lost.set(if message.is_empty() { format!("{reason:?}") } else { message });
        });
        // Errors outside any scope; the default handler would panic.
        let lost = self.clone();
        device.on_uncaptured_error(Arc::new(move |error| match error {
            Error::OutOfMemory { .. } | Error::Validation { .. } => (),
            Error::Internal { description, .. } => lost.set(description),
        }));
    }

    pub(super) fn set(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// An error if the device is gone: the reason behind whatever else went wrong.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(message) => Err(Failure::DeviceLost { message: text(message.clone()) }),
            None => Ok(()),
        }
    }
}

/// Catches every error of the calls between `open` and `close`, which must be in one thread without
/// a wait between.
pub(crate) struct Scopes {
    lost: Lost,
    memory: ErrorScopeGuard,
    internal: ErrorScopeGuard,
    validation: ErrorScopeGuard,
}

impl Scopes {
    pub(crate) fn open(device: &Device, lost: &Lost) -> Scopes {
        Scopes {
            lost: lost.clone(),
            memory: device.push_error_scope(ErrorFilter::OutOfMemory),
            internal: device.push_error_scope(ErrorFilter::Internal),
            validation: device.push_error_scope(ErrorFilter::Validation),
        }
    }

    /// The scopes end now; what they caught may come later.
    pub(crate) fn close(self) -> impl Future<Output = Result<(), Failure>> {
        let Scopes { lost, memory, internal, validation } = self;
        let (validation, internal, memory) = (validation.pop(), internal.pop(), memory.pop());
        async move {
            // All three are awaited, the graver ones looked at first.
            let caught = [memory.await, internal.await, validation.await];
            lost.check()?;
            caught.into_iter().flatten().map(failure).next().map_or(Ok(()), Err)
        }
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::OutOfMemory { source } => Failure::OutOfMemory { message: text(source.to_string()) },
        Error::Validation { description, .. } => Failure::Kernel { message: text(description) },
        Error::Internal { description, .. } => Failure::Internal { message: text(description) },
    }
}

pub(super) fn internal(message: impl Into<String>) -> Failure {
    Failure::Internal { message: text(message.into()) }
}

/// A message of a bounded length, without the blank lines drivers like to add.
pub(super) fn text(message: String) -> String {
    clip(message.trim().to_owned(), MAX_TEXT_BYTES)
}
