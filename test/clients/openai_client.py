"""Asks trained models as users of OpenAI's client do: python openai_client.py HTTP GRPC, two addresses."""

import asyncio
import sys

import numpy as np
import openai

options = {"base_url": f"http://{sys.argv[1]}/openai/v1", "api_key": "none", "max_retries": 0}
client = openai.OpenAI(**options)
question = {"model": "chat", "messages": [{"role": "user", "content": "The list type"}], "max_tokens": 6}


def refused(error, ask, **request):
    try:
        ask(**request)
    except error as e:
        return e
    raise AssertionError(f"{error} was not raised")


assert {"chat", "completion", "iris", "iris-onnx", "vectors"} <= {m.id for m in client.models.list()}

whole = client.chat.completions.create(**question).choices[0].message.content
assert len(whole) == 6, whole
chunks = list(client.chat.completions.create(**question, stream=True))
texts = [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content]
assert "".join(texts) == whole, (chunks, whole)
assert chunks[-1].choices[0].finish_reason == "stop", chunks[-1]

text = client.completions.create(model="completion", prompt="The list type").choices[0].text
assert len(text) == 8, text
parts = client.completions.create(model="completion", prompt="The list type", stream=True)
assert "".join(c.choices[0].text for c in parts) == text

found = client.embeddings.create(model="vectors", input=["numbers", "names", "numbers and names"]).data
one, other, both = (np.array(d.embedding) for d in found)
assert one @ other == 0 and one @ both > 0.5 and abs(np.linalg.norm(both) - 1) < 1e-6, found

e = refused(openai.NotFoundError, client.chat.completions.create, **question | {"model": "gone"})
assert e.code == "model_not_found", e.body
e = refused(openai.BadRequestError, client.chat.completions.create, **question | {"model": "iris"})
assert "app iris takes tensors" in e.message, e.body
e = refused(openai.BadRequestError, client.embeddings.create, model="iris", input="numbers")
assert "app iris" in e.message, e.body
e = refused(openai.InternalServerError, client.chat.completions.create, **question | {"messages": ["The list type"]})
assert "TypeError" in e.message, e.body


async def side_by_side():
    async with openai.AsyncOpenAI(**options) as several:

        async def one(length):
            request = question | {"max_tokens": length}
            stream = await several.chat.completions.create(**request, stream=True)
            streamed = "".join([c.choices[0].delta.content or "" async for c in stream])
            again = await several.chat.completions.create(**request)
            assert again.choices[0].message.content == streamed and len(streamed) == length, (again, streamed)

        await asyncio.gather(*map(one, range(1, 7)))


asyncio.run(side_by_side())
print("OpenAI's client: all as expected")
