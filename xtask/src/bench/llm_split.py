"""A language model of a pool, asked as its users do. Prints one JSON object.

    llm_split.py speed URL KEY MODEL TOKENS STREAMS
    llm_split.py recovery URL KEY MODEL TOKENS KILLS SHOAL JOIN FOLDER

`speed`: tokens a second of one conversation, and of several together. `recovery`: nodes are killed in the middle of answers, each
time another place of the crew; the longest time without a word, and answers that are not those of the undisturbed run.
"""

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
QUESTION = [{"role": "user", "content": "Tell me a long story about a fish that learns to sing."}]


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=600)


def crew():
    services = json.load(ask("/api/v1/services"))["services"]
    return next(service for service in services if service["name"] == model)["crew"]


def speak(seed=None, heard=lambda count: None):
    """The words of an answer, and when each came."""
    body = {"model": model, "messages": QUESTION, "stream": True, "max_tokens": tokens}
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


def recovery(kills, shoal, link, folder):
    nodes = {}

    def add():
        name = f"n{len(nodes)}"
        words = [shoal, "join", link, "--key", key, "--node-name", name, "--no-gpu", "--cpus", "1", "--memory", "1G"]
        process = subprocess.Popen([*words, "--data", f"{folder}/{name}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        nodes[name] = process

    def ready():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            now = crew()
            if now and now["ready"]:
                return now["stages"]
            time.sleep(0.1)
        raise SystemExit("the crew does not get ready")

    pauses, different = [], 0
    try:
        for _ in range(3):
            add()
        stages = ready()
        expected, _ = speak()
        for kill in range(kills):
            stages = ready()
            add()
            victim = nodes[stages[kill % len(stages)]["name"]]
            when = len(expected) // 3 + kill % 7

            def heard(count):
                if count == when:
                    os.kill(victim.pid, signal.SIGKILL)

            words, times = speak(heard=heard)
            # How words are put into parts is nobody's promise.
            different += "".join(words) != "".join(expected)
            pauses.append(max(after - before for before, after in zip(times, times[1:])))
            victim.wait()
    finally:
        for node in nodes.values():
            node.kill()
    return {"longest": max(pauses), "median": sorted(pauses)[len(pauses) // 2], "different": different, "kills": kills}


found = speed(int(sys.argv[6])) if what == "speed" else recovery(int(sys.argv[6]), *sys.argv[7:10])
print(json.dumps(found))
