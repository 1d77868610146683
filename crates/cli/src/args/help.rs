//! What `--help` adds to each verb: examples that run as printed.

pub(super) const SHOAL: &str = "\
Start with:
  shoal up                                   start a pool on this machine, with a page to join it
  shoal map wave.wgsl data.npy -o out.npy    run a GPU kernel over an array

A pool is a coordinator (the server) and its nodes (the browser tabs and machines that compute).
A job is cut into units; each unit runs on one node.

Exit codes: 0 success, 1 the job failed, or the network, disk or coordinator did, 2 wrong usage or
input, 123 exec: the program failed on some inputs, 130 interrupted. To see more log messages, set SHOAL_LOG=info or SHOAL_LOG=debug.";

pub(super) const UP: &str = "\
Examples:
  shoal up
  shoal up --listen 0.0.0.0:8000 --data ./pool
  shoal up --no-node     do not compute on this machine";

pub(super) const SERVE: &str = "\
Examples:
  shoal serve
  shoal serve --listen 127.0.0.1:0 --json";

pub(super) const JOIN: &str = "\
Examples:
  shoal join 'https://192.168.1.20:7420/join#TOKEN'
  shoal join 'https://192.168.1.20:7420/join#TOKEN' --cpus 2 --no-gpu
  shoal join 'https://192.168.1.20:7420/join#TOKEN' --memory 4G     use at most 4 GiB at once
  shoal join 'https://192.168.1.20:7420/join#TOKEN' --never KEY     run no code signed with KEY
  SHOAL_KEY=APIKEY shoal join https://192.168.1.20:7420 --own       your own machine: trust it
  shoal join https://192.168.1.20:7420 --key-file api.key           the same

Put the link in quotes: everything after '#' is the token.";

pub(super) const JOBS: &str = "\
Examples:
  shoal jobs
  shoal jobs --json | jq '.jobs[0].state'";

pub(super) const NODES: &str = "\
Examples:
  shoal nodes
  shoal nodes --all      also devices that left: what they did, and when they were last here
  shoal nodes --json";

pub(super) const WATCH: &str = "\
Examples:
  shoal watch 12
  shoal watch 12 -o out.npy     and save the result at the end
  shoal watch 12 --json         one JSON line per change

Ctrl-C stops watching; the job keeps running. The exit code is 1 if the job failed.";

pub(super) const RESULT: &str = "\
Examples:
  shoal result 12 -o out.npy      of map and sim; any other name gets the raw numbers
  shoal result 12 -o picture.png  of render
  shoal result 12                 of exec over lines: the answers, in order
  shoal result 12 -o answers/     of exec over files: a file for each, of the same name

Shoal keeps results until you remove their jobs (shoal rm). For an array, the coordinator does not
know the shape of your input: the .npy file has one row for each item.";

pub(super) const RM: &str = "\
Examples:
  shoal rm 12 13
  shoal rm --older 7d
  shoal rm 14 --force     it is still running: stop it, then remove it";

pub(super) const CANCEL: &str = "\
Examples:
  shoal cancel 12";

pub(super) const EXPLAIN: &str = "\
Examples:
  shoal explain 12           how job 12 is going, and what it is waiting for
  shoal explain 12/3400      who computed item 3400, and who checked it
  shoal explain node:3       how much node 3 is trusted, and why
  shoal explain smollm2      how fast a model is on one device and on several, predicted and
                             measured, and why so many keep it ready";

pub(super) const RECEIPT: &str = "\
Examples:
  shoal receipt 12
  shoal receipt 12 -o job12.json
  shoal verify job12.json --result out.npy

The receipt lists the hashes of inputs, code and output, and for every unit who computed it and who
checked it. The coordinator signs it.";

pub(super) const VERIFY: &str = "\
Examples:
  shoal verify job12.json --key 9f2c… --result out.npy --code wave.wgsl --input data.npy
  shoal verify job12.json            use the coordinator's key from the data folder

This command only reads files; it needs no network. Exit codes: 0 everything matches, 1 something
does not match, 2 there is no key to check the signature with, or the receipt cannot be read.";

pub(super) const NOOP: &str = "\
Examples:
  shoal noop --items 100000 --json
  shoal noop --items 1 --repeat 500 --json     measure the time from submit to result";

pub(super) const MAP: &str = "\
Examples:
  shoal map wave.wgsl data.npy -o out.npy
  shoal map wave.wgsl data.f32 --raw f32 -o out.f32
  shoal map wave.wgsl arrays.npz:heights                                 prints what came out
  make-numbers | shoal map wave.wgsl - --raw f32 -o out.npy
  shoal map saxpy.wgsl x.npy y.npy --param a=0.25 -o out.npy
  shoal map spiral.wgsl --items 100000 --param turns=12 -o points.npy
  shoal map matmul.wgsl a.npy b.npy --in-per a=256 --whole b --out-per 256 -o c.npy
  shoal map lookup.wgsl index.npy table.npy --whole table -o out.npy     every device gets the table
  shoal map average.wgsl data.npy --edge mirror -o out.npy               items look at neighbours
  shoal map delay.wgsl data.npy delays.npy --overlap signal=16 -o out.npy
  shoal map dot.wgsl a.npy b.npy --reduce sum                            prints one number
  shoal map histogram.wgsl data.npy --in-per 100 --out-per 8 --reduce sum -o counts.npy
  shoal map wave.wgsl data.npy -o out.npy --verify quorum:3 --tolerance abs=1e-6

The inputs go to the kernel's read-only arrays in binding order. If the output's name ends in .npy,
the file gets a header and keeps the input's shape. Any other file gets the raw numbers. Without -o,
Shoal prints the result's shape, its smallest, mean and largest number, and the first few.

Write the kernel as if one GPU had the whole array. An item is one invocation. Items run in units on
different devices, but ids and arrayLength count over the whole job, and input[i - 1u] is the
element before, wherever the job was cut. If an item reads an element that its unit was not given,
the job stops.

If the parameter block has u32 members named `total`, `offset` and `length`, Shoal fills them in.
`total` is the number of items in the job. If items read only their own elements, `offset` is the
first item of the unit and `length` is the number of its items, so offset + id.x is the item's place
in the job. In any other kernel id.x is already that place, `offset` is 0 and `length` is `total`.

For more, and twelve kernels you can run, see docs/map-kernels.md";

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

With --lines, the program runs once for each line of stdin, or for each --batch of lines. The
answers come out in order, each ended by a newline, as soon as all before them are there. If the
reader closes the pipe, as head does, the job is cancelled. With files, it runs once for each file: it reads
the file on stdin, finds the file's name in SHOAL_INPUT, and its output goes to DIR/NAME while the job
runs. With neither, or with -, it runs once on all of stdin. Everything after -- is passed to the program as arguments.
A wasm32-wasip1 program finds the files of --folder in /data, and may write to /tmp, which is empty in every run.
Files that it leaves in /out come back in DIR/NAME.out/. DIR is the folder of -o if the inputs are files;
otherwise name it with --out-files.
A wasm32-wasip2 component gets no files (docs/programs.md).

If the program fails on an input (it traps, goes over a limit, or its exit code is not one of
--ok-exit), all other inputs still run. Shoal lists the failed inputs with the reason and the end of stderr,
and ends with exit code 123. If a run takes too long, Shoal tries it on a second device, if there is
one, before it counts as failed. What a failed run wrote to stdout is printed too, but is not saved as DIR/NAME.
To run only the failed inputs again, save them with --failures and give the file to --only:

  shoal exec prog.wasm pictures/* -o out/ --failures failed.jsonl
  shoal exec better.wasm pictures/* -o out/ --only failed.jsonl

With --resume FILE, Shoal records finished inputs in FILE. After an interruption, after failures, or
with new or changed inputs, the same command runs only what is missing. Shoal keeps answers up to the
first missing one and drops the rest. A program that uses random numbers gets different ones when the
rest of its inputs run later.

  shoal exec prog.wasm pictures/* -o out/ --resume out.resume";

pub(super) const SIM: &str = "\
Examples:
  shoal sim fluid.wgsl --grid 1024x1024 --steps 1000 -o field.npy
  shoal sim gray-scott.wgsl --grid 512x512 --steps 5000 --param feed=0.037 --picture spots.png
  shoal sim fluid.wgsl --grid 2048x2048 --steps 500 --members 3 --passes advect,jacobi*20,project -o field.npy
  shoal sim fluid.wgsl --grid 1024x1024 --steps 500 --first field.npy -o later.npy
  shoal sim heat.wgsl --grid 4096x4096 --steps 9000 --keep-every 1000 --reduce mean

Each node computes a band of rows, sized by its speed. In every step it exchanges the edges of its
band with its neighbours, directly where the network allows it. The grid wraps around. If a node
leaves, the others continue from the last checkpoint, and the result is the same. For more, see
docs/simulations.md";

pub(super) const TALK: &str = "\
Examples:
  echo 'meet 2' | shoal talk 'http://127.0.0.1:7420/join#TOKEN'
  shoal talk 'http://127.0.0.1:7420/join#TOKEN' --no-direct";

pub(super) const SERVICE: &str = "\
Examples:
  shoal service add upper upper.wasm            keep a program ready on one of your nodes
  shoal service add upper upper.wasm --least 2  on two
  echo hello | shoal ask upper                  ask it
  shoal service rm upper                        end it";

pub(super) const SERVICES: &str = "\
Examples:
  shoal services
  shoal services --json";

pub(super) const ASK: &str = "\
Examples:
  echo hello | shoal ask upper
  shoal ask upper request.txt --deadline 5";

pub(super) const MODEL: &str = "\
Examples:
  shoal model add yolo.onnx                     keep a model ready on one of your nodes
  shoal model add yolo.onnx --name eyes --least 2
  shoal infer yolo --image bus.jpg --task detect -o boxes.png
  shoal model add smollm2.gguf --context 2048   a language model, for shoal chat
  shoal model add https://models.example/smollm2.gguf
                                                from the web; after an interruption, the same
                                                command continues the download
  shoal model add yolo.onnx --split 3 --calibrate photos/ --task detect
                                                show what f16 and int8 between devices change
  shoal model add yolo.onnx --split 3 --wire f16
  shoal model add big.gguf --split 2 --by tensors
                                                each node has some rows of every matrix
  shoal model add smollm2.gguf --gpu            computed by a GPU
  shoal model rm yolo                           remove it
  shoal model quantize yolo.onnx --calibrate photos/ --task detect -o yolo-int8.onnx

The file must hold its weights. A program that speaks the Open Inference Protocol, such as
tritonclient, can ask the model at http://ADDRESS/v2/models/yolo/infer, with the API key as bearer
token.";

pub(super) const QUANTIZE: &str = "\
Examples:
  shoal model quantize resnet.onnx --calibrate pictures.npy -o resnet-int8.onnx
  shoal model quantize yolo.onnx --calibrate photos/ --task detect -o yolo-int8.onnx
  shoal model quantize bert.onnx -o bert-int8.onnx         without data: matrix products only
  shoal model quantize resnet.onnx --install --calibrate pictures.npy -o resnet-int8.onnx

The work is done by onnxruntime's own quantiser, a Python package.";

pub(super) const CHAT: &str = "\
Examples:
  shoal chat smollm2                            talk in the terminal; /help lists the commands
  shoal chat smollm2 \"Name three fish.\"
  shoal chat smollm2 --system \"Answer in one word.\" --temperature 0 < question.txt
  shoal chat smollm2 --json \"Hello\"             the answer, counts and times as JSON

Ctrl-C stops an answer. Add a model with: shoal model add FILE.gguf. Programs ask it through
OpenAI's API at http://ADDRESS/v1, with the API key.";

pub(super) const MODELS: &str = "\
Examples:
  shoal models
  shoal models --json";

pub(super) const INFER: &str = "\
Examples:
  shoal infer yolo --input images=bus.npy             print a summary of every output
  shoal infer yolo --input images=bus.npy -o out/     write out/NAME.npy for every output
  shoal infer add --input a=1.npy --input b=2.npy --json
  shoal infer yolo --image bus.jpg --task detect -o boxes.png
  shoal infer resnet --image cat.png --task classify --labels imagenet.txt
  shoal infer resnet --batch pictures.npy -o scores.npy      run on every row, on all nodes
  shoal infer resnet.onnx --images photos/ --task classify -o results.jsonl

For more, see docs/models.md";
