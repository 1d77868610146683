//! What `--help` adds to each verb: examples that run as printed.

pub(super) const SHOAL: &str = "\
Start with:
  shoal up                                   a pool on this machine, with a page to join it
  shoal map wave.wgsl data.npy -o out.npy    a GPU kernel over an array

Exit codes: 0 done, 1 the job or the world failed, 2 wrong usage or input, 130 interrupted.";

pub(super) const UP: &str = "\
Examples:
  shoal up
  shoal up --listen 0.0.0.0:8000 --data ./pool
  shoal up --no-node     lend nothing of this machine";

pub(super) const SERVE: &str = "\
Examples:
  shoal serve
  shoal serve --listen 127.0.0.1:0 --json";

pub(super) const JOIN: &str = "\
Examples:
  shoal join 'https://192.168.1.20:7420/join#TOKEN'
  shoal join 'https://192.168.1.20:7420/join#TOKEN' --cpus 2 --no-gpu
  shoal join 'https://192.168.1.20:7420/join#TOKEN' --never KEY     run nothing signed with KEY
  SHOAL_KEY=APIKEY shoal join https://192.168.1.20:7420 --own       the operator's own machine
  shoal join https://192.168.1.20:7420 --key-file api.key           the same

Quote the link: everything after '#' is the token.";

pub(super) const JOBS: &str = "\
Examples:
  shoal jobs
  shoal jobs --json | jq '.jobs[0].state'";

pub(super) const NODES: &str = "\
Examples:
  shoal nodes
  shoal nodes --json";

pub(super) const WATCH: &str = "\
Examples:
  shoal watch 12
  shoal watch 12 --json     one JSON line per change

Ctrl-C stops watching; the job goes on. Exit code 1 if the job failed.";

pub(super) const CANCEL: &str = "\
Examples:
  shoal cancel 12";

pub(super) const EXPLAIN: &str = "\
Examples:
  shoal explain 12           why job 12 ran as it did, and what it waits for
  shoal explain 12/3400      who computed item 3400, and who checked it
  shoal explain node:3       what node 3 is trusted with, and why";

pub(super) const RECEIPT: &str = "\
Examples:
  shoal receipt 12
  shoal receipt 12 -o job12.json
  shoal verify job12.json --result out.npy

The receipt names inputs, code and output by their hashes and every unit with who computed and who
checked it, signed by the coordinator.";

pub(super) const VERIFY: &str = "\
Examples:
  shoal verify job12.json --key 9f2c… --result out.npy --code wave.wgsl --input data.npy
  shoal verify job12.json            with the key of the coordinator in the data folder

Reads files only; asks nobody. Exit codes: 0 all that was asked holds, 1 something does not match,
2 there is no key to hold the signature against, or the receipt cannot be read.";

pub(super) const NOOP: &str = "\
Examples:
  shoal noop --items 100000 --json
  shoal noop --items 1 --repeat 500 --json     submit-to-result times";

pub(super) const MAP: &str = "\
Examples:
  shoal map wave.wgsl data.npy -o out.npy
  shoal map wave.wgsl data.f32 --raw f32 -o out.f32
  shoal map saxpy.wgsl x.npy y.npy --param a=0.25 -o out.npy
  shoal map spiral.wgsl --items 100000 --param turns=12 -o points.npy
  shoal map matmul.wgsl a.npy b.npy --in-per a=256 --whole b --out-per 256 -o c.npy
  shoal map lookup.wgsl index.npy table.npy --whole table -o out.npy     every device gets the table
  shoal map average.wgsl data.npy --edge mirror -o out.npy               items look at neighbours
  shoal map delay.wgsl data.npy delays.npy --overlap signal=16 -o out.npy
  shoal map dot.wgsl a.npy b.npy --reduce sum                            prints one number
  shoal map histogram.wgsl data.npy --in-per 100 --out-per 8 --reduce sum -o counts.npy
  shoal map wave.wgsl data.npy -o out.npy --verify quorum:3 --tolerance abs=1e-6

Inputs go to the kernel's read-only arrays in binding order. An output named .npy gets a header and
keeps the input's shape; any other name gets the plain numbers.

Write the kernel as if one GPU had the whole array. Items run in units on different devices, but ids
and arrayLength count over the whole job, and input[i - 1u] is the element before, wherever the job
was cut. An item that reads what its unit was not given stops the job.

Shoal fills in three u32 members of the parameter block by their names: `total` is the number of
items in the job. In a kernel that keeps to its own item, `offset` is the first item of the unit and
`length` the number of its items, so offset + id.x is the item's place in the job. In any other
kernel id.x is that place already, `offset` is 0 and `length` is `total`.

More, with twelve kernels that run: docs/map-kernels.md";

pub(super) const RENDER: &str = "\
Examples:
  shoal render mandelbrot.wgsl --size 1920x1080 -o out.png
  shoal render path.wgsl --size 1280x720 --samples 64 -o out.png
  shoal render path.wgsl --size 640x360 -o out.png --priority interactive";

pub(super) const EXEC: &str = "\
Examples:
  seq 1000 | shoal exec prog.wasm --lines
  seq 1000 | shoal exec prog.wasm --lines --batch 50 -- --verbose
  shoal exec prog.wasm pictures/* -o out/
  shoal exec prog.wasm --folder words/ < text.txt

With --lines the program runs once per line of stdin (or per --batch of lines); answers come out in
order, each ended by a newline. With files it runs once per file: its bytes on stdin, its name in
SHOAL_INPUT, what it prints in DIR/NAME. With neither it runs once on all of stdin. Words after --
are its arguments.";

pub(super) const SIM: &str = "\
Examples:
  shoal sim fluid.wgsl --grid 1024x1024 --steps 1000 -o field.npy
  shoal sim gray-scott.wgsl --grid 512x512 --steps 5000 --param feed=0.037 --picture spots.png
  shoal sim fluid.wgsl --grid 2048x2048 --steps 500 --members 3 --passes advect,jacobi*20,project -o field.npy
  shoal sim fluid.wgsl --grid 1024x1024 --steps 500 --first field.npy -o later.npy

Each node computes a band of rows, as many as suit its speed, and exchanges the edges with its neighbours in every
step, directly where they reach each other. The grid wraps around. If a node leaves, the others go on
from the last checkpoint; the result is the same. Ctrl-C cancels.";

pub(super) const TALK: &str = "\
Examples:
  echo 'meet 2' | shoal talk 'http://127.0.0.1:7420/join#TOKEN'
  shoal talk 'http://127.0.0.1:7420/join#TOKEN' --no-direct";
