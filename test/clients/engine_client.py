"""Asks a llama.cpp behind Topsail with OpenAI's client: python engine_client.py TOPSAIL PYTHON, that of the engine."""

import asyncio
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np
import openai
from local import WITHIN, here, local, until

MODELS = ("container", "service")  # how Topsail calls the engine
LONG = 30000  # tokens, which take the engine many seconds
KEY = "of the engine"


def page(address):
    asked = urllib.request.Request(f"http://{address}/metrics", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(asked, timeout=WITHIN) as answer:
        return answer.read().decode()


def total(text, name, label=""):
    """The sum of the series of a metric, of those with a label."""
    found = [line.split() for line in text.splitlines() if line.startswith((name + " ", name + "{")) and label in line]
    return sum(float(words[-1]) for words in found) if found else None


class Engine:
    """A llama.cpp, which can be killed and started again at its address."""

    def __init__(self, python, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self.log = f"127.0.0.1:{self.port}", pathlib.Path(folder, "engine.log")
        self.command = [python, here / "llama.py", pathlib.Path(folder, "tiny.gguf"), str(self.port), KEY]

    def start(self):
        with self.log.open("a") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=WITHIN)

    def idle(self):
        return total(page(self.address), "llamacpp:requests_processing") == 0

    def said(self):
        return total(page(self.address), "llamacpp:tokens_predicted_total")


def ask(model, words, length, **more):
    """A request whose answer is the same each time."""
    messages = [{"role": "user", "content": words}]
    exactly = {"cache_prompt": False}  # it computes a prompt in the same steps each time
    return {"model": model, "messages": messages, "max_tokens": length, "temperature": 0, "extra_body": exactly} | more


def joined(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def refused(error, call, *which, **request):
    try:
        answer = call(*which, **request)
    except error as e:
        return e
    raise AssertionError(f"{error} was not raised, but {answer}")


class Client:
    """OpenAI's client, which asks one of the models."""

    def __init__(self, http, metrics, engine, model):
        self.options = {"base_url": f"http://{http}/openai/v1", "api_key": "none", "max_retries": 0, "timeout": WITHIN}
        self.openai = openai.OpenAI(**self.options)
        self.chat, self.metrics, self.engine, self.model = self.openai.chat.completions.create, metrics, engine, model

    def metric(self, name):
        return total(page(self.metrics), name, f'model="{self.model}"')

    def chats(self):
        """Whole and in parts, the same text."""
        request = ask(self.model, "Hello", 40)
        whole = self.chat(**request)
        said, used = whole.choices[0], whole.usage
        assert len(said.message.content) == 40 and whole.model == self.model, whole
        assert said.finish_reason == "length" and used.completion_tokens == 40 < used.total_tokens, whole
        chunks = list(self.chat(**request, stream=True))
        assert joined(chunks) == said.message.content, (chunks, whole)
        assert len(chunks) > 40 and {c.model for c in chunks} == {self.model}, chunks
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length", chunks
        assert not any(c.usage for c in chunks), chunks
        *chunks, last = self.chat(**request, stream=True, stream_options={"include_usage": True})
        assert joined(chunks) == said.message.content and not last.choices, last
        assert last.usage.prompt_tokens == used.prompt_tokens and last.usage.completion_tokens == 40, last
        drawn = [joined(self.chat(**request | {"temperature": 1, "seed": s}, stream=True)) for s in (5, 5, 6)]
        assert drawn[0] == drawn[1] != drawn[2], drawn
        return said.message.content

    def chooses(self):
        """Several choices with probabilities of tokens, and an answer of a schema, which is the engine's doing."""
        request = ask(self.model, "Hello", 8, n=2, logprobs=True, top_logprobs=2)
        whole = self.chat(**request).choices
        assert [c.index for c in whole] == [0, 1] and all(len(c.logprobs.content) == 8 for c in whole), whole
        streamed = [c.choices[0] for c in self.chat(**request, stream=True) if c.choices]
        for one in whole:
            parts = [c for c in streamed if c.index == one.index]
            assert "".join(c.delta.content or "" for c in parts) == one.message.content, (parts, one)
            tokens = [t.token for c in parts if c.logprobs for t in c.logprobs.content]
            assert tokens == [t.token for t in one.logprobs.content], (parts, one)
        schema = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
        form = {"type": "json_schema", "json_schema": {"name": "mood", "schema": schema}}
        answer = self.chat(**ask(self.model, "Hello", 100, response_format=form)).choices[0]
        assert answer.finish_reason == "stop", answer
        assert json.loads(answer.message.content)["mood"] in ("good", "bad"), answer

    def completes(self):
        request = {"model": self.model, "prompt": "Once", "max_tokens": 20, "temperature": 0}
        request["extra_body"] = {"cache_prompt": False}
        whole = self.openai.completions.create(**request)
        assert len(whole.choices[0].text) == whole.usage.completion_tokens == 20, whole
        parts = list(self.openai.completions.create(**request, stream=True, stream_options={"include_usage": True}))
        assert "".join(c.choices[0].text for c in parts if c.choices) == whole.choices[0].text, (parts, whole)
        assert parts[-1].usage.completion_tokens == 20, parts[-1]
        several = self.openai.completions.create(**request | {"prompt": ["Once", "Twice"]}).choices
        assert several[0].text == whole.choices[0].text != several[1].text, several

    def embeds(self):
        """The client asks for base64, which the engine does not hear of."""
        answer = self.openai.embeddings.create(model=self.model, input=["one", "two", "one"])
        one, two, again = (np.array(d.embedding) for d in answer.data)
        assert one.shape == (128,) and np.allclose(one, again) and not np.allclose(one, two), answer
        assert abs(np.linalg.norm(one) - 1) < 1e-3 and answer.usage.prompt_tokens > 0, answer
        floats = self.openai.embeddings.create(model=self.model, input="one", encoding_format="float")
        assert np.allclose(floats.data[0].embedding, one, atol=1e-5), floats

    def is_refused(self):
        """What the engine does not want is an error with its message."""
        for more in {}, {"stream": True}:
            e = refused(openai.BadRequestError, self.chat, **ask(self.model, "long " * 8000, 5, **more))
            assert "exceeds the available context size" in e.message, e.body
            e = refused(openai.BadRequestError, self.chat, **ask(self.model, 3, 5, **more))
            assert "Expected 'content'" in e.message, e.body
        assert self.chat(**ask(self.model, "Hello", 5)).choices[0].message.content

    def is_cached(self, whole):
        """What came in parts is the answer to the same request without, and the other way round."""
        request = ask(f"{self.model}-cached", "Hello", 40)
        before = self.engine.said()
        assert joined(self.chat(**request, stream=True)) == whole
        until("the engine's count", lambda: self.engine.said() >= before + 40)
        until("Topsail's count of tokens", lambda: self.metric("completion_tokens_total") > 200)
        before = self.engine.said()
        again = self.chat(**request)
        assert again.choices[0].message.content == whole and again.choices[0].finish_reason == "length", again
        assert again.usage.completion_tokens == 40 and again.choices[0].message.role == "assistant", again
        assert joined(self.chat(**request, stream=True)) == whole
        assert self.engine.said() == before, "the engine was asked again"

    def leaves(self):
        """A client that leaves frees the engine, in mid-stream and before an answer that is not in parts."""
        until("the engine is idle", self.engine.idle)
        before = self.engine.said()
        with self.chat(**ask(self.model, "Hello", LONG), stream=True) as stream:
            assert len([chunk for _, chunk in zip(range(10), stream, strict=False)]) == 10
            until("the load of the engine", lambda: self.metric("requests_running") == 1)
        until("the end of the request that was left", self.engine.idle)
        asyncio.run(self.leaves_early())
        assert self.engine.said() - before < LONG, "the engine has gone on to the end"
        until("no load", lambda: self.metric("requests_running") == 0)

    async def leaves_early(self):
        async with openai.AsyncOpenAI(**self.options) as several:
            asked = asyncio.create_task(several.chat.completions.create(**ask(self.model, "Hello", LONG)))
            while self.engine.idle():
                await asyncio.sleep(0.05)
            asked.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asked
        until("the end of the request that was left", self.engine.idle)

    async def side_by_side(self):
        """More at a time than the engine has slots."""
        async with openai.AsyncOpenAI(**self.options) as several:

            async def one(length):
                request = ask(self.model, f"Tell {length}", length)
                stream = await several.chat.completions.create(**request, stream=True)
                assert len("".join([c.choices[0].delta.content or "" async for c in stream if c.choices])) == length

            await asyncio.gather(*map(one, range(10, 90, 10)))

    def status(self):
        """Of a request that the engine must answer: 200, or that of an error."""
        try:
            self.chat(**ask(self.model, "Hello", 40))
        except openai.APIStatusError as e:
            return e.status_code
        return 200

    def default(self):
        """What an app with a text for it answers for the engine."""
        answer = self.chat(**ask(f"{self.model}-cached", "Never answered", 40))
        assert answer.model_extra["topsail"]["default"], answer
        return answer.choices[0].message.content


def loses(clients, engine, texts):
    """The engine dies within answers, and comes back."""
    streams = [c.chat(**ask(c.model, "Hello", LONG), stream=True) for c in clients]
    for stream in streams:
        next(stream)
    engine.kill()
    for stream in streams:
        e = refused(openai.APIError, list, stream)
        assert "before it was complete" in e.message, e
    for client in clients:
        assert client.status() in (500, 503), "it answers without an engine"
        until(f"the {client.model} is not ready", lambda client=client: client.status() == 503)
        assert client.default() == "Later."
    engine.start()
    for client in clients:
        until(f"the {client.model} is back", lambda client=client: client.status() == 200)
        assert client.chats() == texts[client.model], "the model says something else"


def main(topsail, python):
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(python, folder)
        key, config = pathlib.Path(folder, "key"), pathlib.Path(folder, "engine.toml")
        key.write_text(KEY)
        filled = (here / "engine.toml").read_text()
        for name, value in ("ENGINE", engine.address), ("KEY", key), ("TOPSAIL", pathlib.Path(topsail).resolve()):
            filled = filled.replace(name, str(value))
        config.write_text(filled)
        engine.start()
        try:
            with local(topsail, config) as (http, _, metrics):
                walk([Client(http, metrics, engine, model) for model in MODELS], engine)
        except BaseException:
            print(engine.log.read_text()[-10000:])
            raise
        finally:
            engine.kill()


def walk(clients, engine):
    listed = {m.id for m in clients[0].openai.models.list()}
    assert listed == {name for model in MODELS for name in (model, f"{model}-cached")}, listed
    texts = {}
    for client in clients:
        texts[client.model] = client.chats()
        client.chooses()
        client.completes()
        client.embeds()
        client.is_refused()
        client.is_cached(texts[client.model])
        asyncio.run(client.side_by_side())
        client.leaves()
    assert len(set(texts.values())) == 1, texts
    loses(clients, engine, texts)
    print("OpenAI's client and llama.cpp: all as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
