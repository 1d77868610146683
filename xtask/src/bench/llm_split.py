"""A language model of a pool, asked as its users do. Prints one JSON object.

    llm_split.py speed URL KEY MODEL TOKENS STREAMS
    llm_split.py recovery URL KEY MODEL TOKENS KILLS SHOAL JOIN FOLDER NOTES
    llm_split.py late URL KEY MODEL TOKENS MILLIS SHOAL JOIN FOLDER PROMPTS WAYS

`speed`: tokens a second of one conversation, and of several together. `recovery`: nodes are killed in the middle of answers, each
time another place of the crew; the longest time without a word, and answers that are not those of the undisturbed run. Before
the question stand so many notes, so that it is as long as wanted. `late`: two nodes whose frames go through the coordinator
and take so long from one to the other; for each of some prompts, tokens a second without guesses, and if WAYS is `both` with
them: how many rounds through the nodes a token took then, and whether the words were others.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

what, url, key, model = sys.argv[1:5]
tokens = int(sys.argv[5])
QUESTION = "Tell me a long story about a fish that learns to sing."
FISH = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "lives": {"enum": ["sea", "river", "lake"]},
        "weight": {"type": "integer", "minimum": 1, "maximum": 900},
    },
    "required": ["name", "lives", "weight"],
}
FISHES = {"type": "array", "items": FISH, "minItems": 12, "maxItems": 12}
PROMPTS = {
    "prose": (QUESTION, {}),
    "code": ("Write a Python class Fish with a name, a length and a weight, and with a getter and a setter for each.", {}),
    "json": (
        "List twelve fish, each with its name, where it lives, and its weight in kilograms.",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "fishes", "schema": FISHES}}},
    ),
}
NOTE = "The sea is wide, and the fish swim where they like. "


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=600)


def crew():
    services = json.load(ask("/api/v1/services"))["services"]
    return next(service for service in services if service["name"] == model)["crew"]


def speak(seed=None, heard=lambda count: None, notes=0):
    """The words of an answer, and when each came."""
    messages = [{"role": "user", "content": NOTE * notes + QUESTION}]
    body = {"model": model, "messages": messages, "stream": True, "max_tokens": tokens}
    body |= {"temperature": 0} if seed is None else {"temperature": 0.8, "seed": seed}
    words, times = [], []
    for line in ask("/v1/chat/completions", body):
        if not line.startswith(b"data: {"):
            continue
        part = json.loads(line[6:])
        if "error" in part:
            raise SystemExit(f"the answer failed: {part['error']}")
        word = part["choices"][0]["delta"].get("content") if part["choices"] else None
        if word:
            words.append(word)
            times.append(time.monotonic())
            heard(len(words))
    return words, times


def speed(streams):
    speak()
    _, times = speak()
    alone = (len(times) - 1) / (times[-1] - times[0])
    found = [None] * streams

    def run(at):
        found[at] = speak(seed=at)[1]

    began = time.monotonic()
    threads = [threading.Thread(target=run, args=(at,)) for at in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"alone": alone, "together": sum(map(len, found)) / (time.monotonic() - began)}


def join(shoal, link, folder, name, flags=()):
    words = [shoal, "join", link, "--key", key, "--node-name", name, "--no-gpu", "--cpus", "1", "--memory", "1G", *flags]
    return subprocess.Popen([*words, "--data", f"{folder}/{name}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def ready():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        now = crew()
        if now and now["ready"]:
            return now["stages"]
        time.sleep(0.1)
    raise SystemExit("the crew does not get ready")


def recovery(kills, shoal, link, folder, notes):
    nodes = {}

    def add():
        name = f"n{len(nodes)}"
        nodes[name] = join(shoal, link, folder, name)

    pauses, different = [], 0
    try:
        for _ in range(3):
            add()
        stages = ready()
        expected, _ = speak(notes=notes)
        for kill in range(kills):
            stages = ready()
            add()
            victim = nodes[stages[kill % len(stages)]["name"]]
            when = min(len(expected) // 3 + kill % 7, len(expected) - 1)

            def heard(count):
                if count == when:
                    os.kill(victim.pid, signal.SIGKILL)

            words, times = speak(heard=heard, notes=notes)
            # How words are put into parts is nobody's promise.
            different += "".join(words) != "".join(expected)
            pauses.append(max(after - before for before, after in zip(times, times[1:])))
            if victim.poll() is None and len(words) < when:
                raise SystemExit(f"the answer ended before a node was killed: {''.join(words)!r}")
            victim.wait()
    finally:
        for node in nodes.values():
            node.kill()
    return {"longest": max(pauses), "median": sorted(pauses)[len(pauses) // 2], "different": different, "kills": kills}


async def pass_on(reader, writer, delay):
    """Gives every byte on when its time has come, in order."""
    queue = asyncio.Queue()

    async def give():
        while (due_bytes := await queue.get())[1]:
            await asyncio.sleep(max(0, due_bytes[0] - time.monotonic()))
            writer.write(due_bytes[1])
        writer.close()

    giving = asyncio.create_task(give())
    while data := await reader.read(1 << 16):
        queue.put_nowait((time.monotonic() + delay, data))
    queue.put_nowait((0, b""))
    await giving


def far(delay):
    """A way to the coordinator on which everything takes so long, in both directions: its port."""
    host, port = url.removeprefix("http://").split(":")
    opened = threading.Event()
    here = []

    async def serve():
        async def meet(reader, writer):
            try:
                there = await asyncio.open_connection(host, int(port))
                await asyncio.gather(pass_on(reader, there[1], delay), pass_on(there[0], writer, delay))
            except OSError:
                writer.close()

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        here.append(server.sockets[0].getsockname()[1])
        opened.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    opened.wait()
    return here[0]


def answer(prompt, guess):
    """The words of an answer, tokens a second behind the first one, and rounds that a token took."""
    question, more = PROMPTS[prompt]
    body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": tokens, "temperature": 0}
    body |= {"stream": True, "stream_options": {"include_usage": True}, "guess": guess, **more}
    words, times, end = [], [], {}
    for line in ask("/v1/chat/completions", body):
        if not line.startswith(b"data: {"):
            continue
        part = json.loads(line[6:])
        if "error" in part:
            raise SystemExit(f"the answer failed: {part['error']}")
        if part.get("timings"):
            end = part
        if part["choices"] and part["choices"][0]["delta"].get("content"):
            words.append(part["choices"][0]["delta"]["content"])
            times.append(time.monotonic())
    behind = end["usage"]["completion_tokens"] - 1
    rounds = behind - end["timings"]["draft_n_accepted"]
    return "".join(words), behind / (times[-1] - times[0]), rounds / behind


def compared(prompt, ways):
    words, plain, _ = answer(prompt, False)
    if ways == "plain":
        return {"plain": plain}
    others, guessing, rounds = answer(prompt, True)
    return {"plain": plain, "guessing": guessing, "rounds": rounds, "different": int(words != others)}


def late(millis, shoal, link, folder, prompts, ways):
    if millis:
        # Half of it from a node to the coordinator, half from there to the other.
        _, place = link.split("/join#")
        link = f"http://127.0.0.1:{far(millis / 2000)}/join#{place}"
    nodes = [join(shoal, link, folder, f"late{millis}-{at}", ["--no-direct"]) for at in range(2)]
    try:
        ready()
        speak()
        return {prompt: compared(prompt, ways) for prompt in prompts.split(",")}
    finally:
        for node in nodes:
            node.kill()
            node.wait()


if what == "speed":
    found = speed(int(sys.argv[6]))
elif what == "late":
    found = late(int(sys.argv[6]), *sys.argv[7:12])
else:
    found = recovery(int(sys.argv[6]), *sys.argv[7:10], int(sys.argv[10]))
print(json.dumps(found), flush=True)
# The thread of a far coordinator does not end by itself.
os._exit(0)
