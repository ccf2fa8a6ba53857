"""OpenAI's client asks Topsail as it asks OpenAI: python openai_client.py ADDRESS KEY LOG."""

import asyncio
import pathlib
import sys
import time

import openai

address, key, log = sys.argv[1:]
base = f"http://{address}/openai/v1"
client = openai.OpenAI(base_url=base, api_key=key, max_retries=0)
question = [{"role": "user", "content": "one two 3 four"}]


def text(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def refused(error, status, ask):
    try:
        ask()
    except error as e:
        assert e.status_code == status and e.message, (e.status_code, e.message)
        return e
    raise AssertionError(f"{error} was not raised")


assert [m.id for m in client.models.list()] == ["bot", "fragile", "slow", "vectors"], client.models.list()
assert client.models.retrieve("bot").id == "bot"

whole = client.chat.completions.create(model="bot", messages=question, max_tokens=3, user="ann")
assert whole.choices[0].message.content == "one two 3 ", whole
assert whole.choices[0].message.role == "assistant" and whole.choices[0].finish_reason == "stop", whole
assert whole.model == "bot" and whole.id.startswith("chatcmpl-"), whole

asked = time.monotonic()
chunks, times = [], []
for chunk in client.chat.completions.create(
    model="bot", messages=question, stream=True, stream_options={"include_usage": True}, temperature=0.5
):
    chunks.append(chunk)
    times.append(time.monotonic() - asked)
assert text(chunks) == "one two 3 four ", chunks
assert chunks[0].choices[0].delta.role == "assistant" and chunks[-2].choices[0].finish_reason == "stop", chunks
assert chunks[-1].usage.completion_tokens == 4 and chunks[-1].choices == [], chunks[-1]
assert times[0] < times[3] / 2, f"parts came together: {times}"  # 0.2 s apart

again = client.chat.completions.create(model="bot", messages=question, stream=True, temperature=0.5)
assert text(list(again)) == "one two 3 four "  # from the cache

for encoding in ("float", openai.NOT_GIVEN):  # without one the client asks for base64, and decodes it
    found = client.embeddings.create(model="vectors", input=["ab", "abcd"], encoding_format=encoding)
    assert [list(d.embedding) for d in found.data] == [[2.0, 0.5], [4.0, 0.5]], found
assert client.completions.create(model="bot", prompt="says who").choices[0].text == "says who", "a completion"
assert "".join(c.choices[0].text for c in client.completions.create(model="bot", prompt="a b", stream=True)) == "a b"

e = refused(openai.NotFoundError, 404, lambda: client.chat.completions.create(model="gone", messages=question))
assert e.code == "model_not_found", e.body
refused(openai.BadRequestError, 400, lambda: client.chat.completions.create(model="bot", messages="hi"))
refused(openai.BadRequestError, 400, lambda: client.chat.completions.create(model="vectors", messages=question))
wrong = openai.OpenAI(base_url=base, api_key="wrong", max_retries=0)
refused(openai.AuthenticationError, 401, lambda: wrong.chat.completions.create(model="bot", messages=question))
refused(openai.InternalServerError, 500, lambda: client.chat.completions.create(model="fragile", messages=question))

try:
    for chunk in client.chat.completions.create(
        model="fragile", messages=[{"role": "user", "content": "go on"}], stream=True
    ):
        assert chunk.choices[0].delta.content == "so far ", chunk
except openai.APIError as e:
    assert "it broke" in e.message, e.message
else:
    raise AssertionError("an answer that was cut seemed whole")

# A client that leaves stops the model.
stream = client.chat.completions.create(model="slow", messages=question, stream=True)
next(iter(stream))
stream.close()
until = time.monotonic() + 5
while "the model was stopped" not in pathlib.Path(log).read_text():
    assert time.monotonic() < until, "the model goes on for a client that has left"
    time.sleep(0.02)


async def side_by_side():
    async with openai.AsyncOpenAI(base_url=base, api_key=key, max_retries=0) as several:

        async def one(i):
            stream = await several.chat.completions.create(
                model="bot", messages=[{"role": "user", "content": f"this is {i}"}], stream=True
            )
            return text([c async for c in stream])

        return await asyncio.gather(*map(one, range(8)))


began = time.monotonic()
assert asyncio.run(side_by_side()) == [f"this is {i} " for i in range(8)]
assert time.monotonic() - began < 8 * 0.4, "they were answered one after another"
