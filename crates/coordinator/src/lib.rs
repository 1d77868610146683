//! Shell of the scheduler: HTTP, sockets, facts on disk, blobs, pages. It decides nothing: what runs
//! where is the business of `shoal-scheduler`, how things are computed that of whoever implements
//! [`Intake`].

mod coordinator;
mod intake;
mod options;

pub use coordinator::Coordinator;
pub use intake::{ElementType, Intake, IntakeError, MapPlan, RenderPlan};
pub use options::{DEFAULT_PORT, OpenError, Options, RunError, Urls};
