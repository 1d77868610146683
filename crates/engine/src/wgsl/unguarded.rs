//! What `guard` is natively. Browsers bring a software GPU of their own, which does not end loops
//! early: nothing is watched here, and these types have no values.

use shoal_protocol::Failure;
use wgpu::{BindGroupLayout, Buffer, CommandEncoder, ComputePass, Device, ShaderSource};

use super::gpu::Core;
use super::pipeline::Compiled;
use super::pool::Lease;

pub(super) enum Guard {}

impl Guard {
    pub(super) fn failure(&self) -> Failure {
        match *self {}
    }
}

pub(super) enum Watched {}

impl Watched {
    pub(super) fn layout(&self, _: &Device) -> BindGroupLayout {
        match *self {}
    }

    pub(super) fn source(self) -> ShaderSource<'static> {
        match self {}
    }
}

pub(super) fn watch(_source: &str, _entry: &str) -> Result<Option<Watched>, String> {
    Ok(None)
}

pub(super) enum Flag {}

impl Flag {
    #[allow(clippy::unused_async, reason = "it waits for memory natively")]
    pub(super) async fn of(_: &Core, compiled: &Compiled) -> Result<Option<Flag>, Failure> {
        debug_assert!(compiled.watch.is_none(), "nothing is watched here");
        Ok(None)
    }

    pub(super) fn lower(&self, _: &mut CommandEncoder) {
        match *self {}
    }

    pub(super) fn bind(&self, _: &mut ComputePass<'_>) {
        match *self {}
    }

    pub(super) fn peek(&self, _: &mut CommandEncoder, _: &Buffer, _: u64) {
        match *self {}
    }

    pub(super) fn failure(&self) -> Failure {
        match *self {}
    }

    pub(super) fn gather(self, _: &mut CommandEncoder) -> (Lease, Guard) {
        match self {}
    }
}
