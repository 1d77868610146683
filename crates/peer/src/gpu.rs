//! Bytes of `wgpu` buffers, out and in: what a version is made of.

use std::sync::mpsc;

use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device, MapMode, PollType, Queue};

use crate::error::{Code, PeerError};

/// What a buffer holds now: everything submitted before is in it. Waits for the device. The buffer needs `COPY_SRC`.
pub fn read(device: &Device, queue: &Queue, buffer: &Buffer) -> Result<Vec<u8>, PeerError> {
    need(buffer, BufferUsages::COPY_SRC)?;
    let size = buffer.size();
    let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
    let staging = device.create_buffer(&BufferDescriptor {
        label: Some("a version on its way out"),
        size,
        usage,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
    queue.submit([encoder.finish()]);
    let (tell, told) = mpsc::channel();
    staging.map_async(MapMode::Read, .., move |mapped| {
        // Nobody listens any more only if this function is left.
        let _ = tell.send(mapped);
    });
    device.poll(PollType::wait_indefinitely()).map_err(|error| lost(&error))?;
    told.recv().map_err(|error| lost(&error))?.map_err(|error| lost(&error))?;
    let view = staging.get_mapped_range(..).map_err(|error| lost(&error))?;
    Ok(view.to_vec())
}

/// Puts a version into a buffer of the same size, before whatever is submitted next. The buffer needs `COPY_DST`.
pub fn write(queue: &Queue, buffer: &Buffer, bytes: &[u8]) -> Result<(), PeerError> {
    need(buffer, BufferUsages::COPY_DST)?;
    if bytes.len() as u64 != buffer.size() {
        let message = format!("{} bytes for a GPU buffer of {}", bytes.len(), buffer.size());
        return Err(PeerError::new(Code::Size, message));
    }
    queue.write_buffer(buffer, 0, bytes);
    Ok(())
}

fn need(buffer: &Buffer, usage: BufferUsages) -> Result<(), PeerError> {
    if buffer.usage().contains(usage) {
        return Ok(());
    }
    Err(PeerError::new(Code::Usage, format!("the GPU buffer needs {usage:?}")))
}

fn lost(error: &dyn std::error::Error) -> PeerError {
    PeerError::new(Code::DeviceLost, format!("the GPU buffer cannot be read: {error}"))
}
