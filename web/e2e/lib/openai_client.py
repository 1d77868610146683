"""What a program written for OpenAI's API does with one model. Prints what it got as JSON."""

import json
import sys
from typing import Literal

import openai
import pydantic

url, key, model = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key=key, timeout=300, max_retries=0)
hello = [{"role": "user", "content": "What colour is the sky?"}]


def chat(**rest):
    return client.chat.completions.create(model=model, messages=hello, **{"temperature": 0, "max_tokens": 12, **rest})


def refusal(ask):
    try:
        ask()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.message]
    return "not refused"


whole = chat()
parts = list(chat(stream=True, stream_options={"include_usage": True}))
chances = chat(max_tokens=3, logprobs=True, top_logprobs=2).choices[0].logprobs.content
seeded = [chat(temperature=1, seed=7).choices[0].message.content for _ in range(2)]
several = chat(temperature=1, seed=7, n=3, max_tokens=6)
text = client.completions.create(model=model, prompt="One, two, three,", temperature=0, max_tokens=4, logprobs=1)
texts = client.completions.create(model=model, prompt=["One, two, three,", "A, B, C,"], temperature=0, max_tokens=4, echo=True)
abandoned = chat(stream=True, max_tokens=2000)
next(iter(abandoned))
abandoned.close()
stop_at = whole.choices[0].message.content[4:7]
bad_key = openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0)

# Pydantic, as programs use it: the answer becomes one of these or an error.
class Animal(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=40)
    legs: int = pydantic.Field(ge=0, le=100)
    colours: list[Literal["red", "green", "blue"]] = pydantic.Field(max_length=2)


described = [{"role": "user", "content": "Describe a dog as JSON."}]
animals = [
    client.chat.completions.parse(
        model=model, messages=described, response_format=Animal, temperature=heat, seed=5, max_tokens=200
    ).choices[0].message.parsed
    for heat in (0, 1.5)
]
free = client.chat.completions.create(
    model=model, messages=described, response_format={"type": "json_object"}, temperature=0, max_tokens=300
).choices[0]
sentences = ["A dog runs.", "A puppy is running.", "The bank lends money."]
numbers = client.embeddings.create(model=model, input=sentences)
as_list = client.embeddings.create(model=model, input=sentences[0], encoding_format="float")
by_tokens = client.embeddings.create(model=model, input=[504, 2933])
several_tokens = client.embeddings.create(model=model, input=[[504, 2933], [504]], dimensions=576)
no_schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "pattern": "a"}}}

print(json.dumps({
    "animals": [animal.model_dump() for animal in animals],
    "free": [free.finish_reason, free.message.content],
    "noSchema": refusal(lambda: chat(response_format=no_schema)),
    "embeddings": [[one.object, one.index, one.embedding] for one in numbers.data],
    "embeddingsUsage": numbers.usage.model_dump(),
    "embeddingsModel": numbers.model,
    "asList": as_list.data[0].embedding,
    "byTokens": [one.embedding for one in [*by_tokens.data, *several_tokens.data]],
    "tokensUsage": [by_tokens.usage.prompt_tokens, several_tokens.usage.total_tokens],
    "emptyText": refusal(lambda: client.embeddings.create(model=model, input="")),
    "fewNumbers": refusal(lambda: client.embeddings.create(model=model, input="a", dimensions=64)),
    "longText": refusal(lambda: client.embeddings.create(model=model, input="word " * 3000)),
    "noToken": refusal(lambda: client.embeddings.create(model=model, input=[10**6])),
    "noEmbedder": refusal(lambda: client.embeddings.create(model="nobody", input="a")),
    "models": [one.id for one in client.models.list()],
    "retrieved": client.models.retrieve(model).id,
    "text": whole.choices[0].message.content,
    "role": whole.choices[0].message.role,
    "finish": whole.choices[0].finish_reason,
    "usage": whole.usage.model_dump(include={"prompt_tokens", "completion_tokens", "total_tokens"}),
    "streamed": "".join(part.choices[0].delta.content or "" for part in parts if part.choices),
    "streamFinish": [part.choices[0].finish_reason for part in parts if part.choices][-1],
    "cached": [usage.prompt_tokens_details.cached_tokens for usage in [whole.usage, parts[-1].usage]],
    "streamUsage": parts[-1].usage.model_dump(include={"prompt_tokens", "completion_tokens", "total_tokens"}),
    "parts": len(parts),
    "chances": [[one.token, one.logprob, [other.token for other in one.top_logprobs]] for one in chances],
    "seeded": seeded,
    "several": [choice.message.content for choice in several.choices],
    "indices": [choice.index for choice in several.choices],
    "stopAt": stop_at,
    "stopped": chat(stop=[stop_at]).choices[0].message.content,
    "stoppedWhy": chat(stop=[stop_at]).choices[0].finish_reason,
    "biased": chat(max_tokens=1, logit_bias={"504": 100}).choices[0].message.content,
    "completion": text.choices[0].text,
    "completionChances": len(text.choices[0].logprobs.tokens),
    "echoes": [choice.text for choice in texts.choices],
    "noModel": refusal(lambda: client.chat.completions.create(model="nobody", messages=hello)),
    "tooHot": refusal(lambda: chat(temperature=9)),
    "tooLong": refusal(lambda: client.completions.create(model=model, prompt="word " * 3000)),
    "tools": refusal(lambda: chat(tools=[{"type": "function", "function": {"name": "f"}}])),
    "noLetter": refusal(lambda: client.completions.create(model=model, prompt="a\u0004b")),
    "badKey": refusal(lambda: bad_key.models.list()),
}))
