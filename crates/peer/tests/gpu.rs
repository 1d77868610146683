//! Bytes of GPU buffers as versions: out of one, over a connection, into another.

use shoal_peer::{Code, Config, Connection, Output, Right, Rights, gpu};
use wgpu::{BufferDescriptor, BufferUsages, Device, Queue};

#[test]
fn a_version_goes_from_one_gpu_buffer_to_another() {
    let Some((device, queue)) = open() else {
        eprintln!("NOT CHECKED: there is no GPU here, not even a software one");
        return;
    };
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
    let buffer = |usage, size| {
        let label = None;
        device.create_buffer(&BufferDescriptor { label, size, usage, mapped_at_creation: false })
    };
    let (source, target) = (buffer(usage, 1 << 20), buffer(usage, 1 << 20));
    let bytes: Vec<u8> = (0..1u32 << 18).flat_map(|at| (at * 7).to_le_bytes()).collect();
    gpu::write(&queue, &source, &bytes).expect("written");

    let mut owner = Connection::new(Config::new(1, 2, [1; 32]));
    let mut guest = Connection::new(Config::new(2, 1, [2; 32]));
    let version = gpu::read(&device, &queue, &source).expect("read");
    let handle = owner.export(version, Rights::of(&[Right::Read]), "").expect("exported");
    let import = guest.import(handle).expect("imported");
    guest.pull(import).expect("asked");
    while carry(&mut owner, &mut guest) | carry(&mut guest, &mut owner) {}
    let copy = guest.copy(import).expect("a copy");
    gpu::write(&queue, &target, copy.bytes()).expect("written");
    assert!(gpu::read(&device, &queue, &target).expect("read") == bytes);

    let refused = gpu::write(&queue, &target, &bytes[4..]).expect_err("of another size");
    assert_eq!(refused.code, Code::Size);
    let closed = buffer(BufferUsages::STORAGE, 4);
    assert_eq!(gpu::read(&device, &queue, &closed).expect_err("closed").code, Code::Usage);
}

fn open() -> Option<(Device, Queue)> {
    let instance = wgpu::Instance::default();
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).ok()?;
    pollster::block_on(adapter.request_device(&Default::default())).ok()
}

fn carry(from: &mut Connection, to: &mut Connection) -> bool {
    let mut any = false;
    while let Some(output) = from.poll_output() {
        if let Output::Send { channel, message } = output {
            to.hear(channel, &message);
            any = true;
        }
    }
    any
}
