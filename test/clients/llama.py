"""Serves a model of random weights with llama.cpp: python llama.py FILE PORT KEY. It writes the file once."""

import pathlib
import sys
import threading

import gguf
import numpy as np
import xllamacpp

WIDTH, HIDDEN, LAYERS, HEADS = 128, 256, 2, 4
SLOTS, SLOT = 2, 1 << 15  # requests at a time, and the tokens of each
UNKNOWN, BEGIN, END = range(3)
TALK = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def vocabulary():
    """The tokens, and their types: three with a meaning, all bytes, and what ASCII prints: only that is said."""
    special = {"<unk>": gguf.TokenType.UNKNOWN, "<s>": gguf.TokenType.CONTROL, "</s>": gguf.TokenType.CONTROL}
    others = {f"<0x{b:02X}>": gguf.TokenType.BYTE for b in range(256)}
    said = {text: gguf.TokenType.NORMAL for text in ["▁", *map(chr, range(33, 127))]}
    return {**special, **others, **said}, len(special) + len(others)


def weights(size, silent):
    """The tensors by name. A token of a row of zeros is never the likeliest."""
    draw = np.random.default_rng(7)

    def matrix(rows, columns, scale):
        return (draw.standard_normal((rows, columns)) * scale).astype(np.float32)

    said = matrix(size, WIDTH, 0.5)
    said[:silent] = 0
    yield "token_embd", matrix(size, WIDTH, 1)
    yield "output", said
    yield "output_norm", np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        for name in "attn_norm", "ffn_norm":
            yield f"blk.{layer}.{name}", np.ones(WIDTH, np.float32)
        for name in "attn_q", "attn_k", "attn_v", "attn_output":
            yield f"blk.{layer}.{name}", matrix(WIDTH, WIDTH, 2 / WIDTH**0.5)
        for name in "ffn_gate", "ffn_up":
            yield f"blk.{layer}.{name}", matrix(HIDDEN, WIDTH, 2 / WIDTH**0.5)
        yield f"blk.{layer}.ffn_down", matrix(WIDTH, HIDDEN, 2 / HIDDEN**0.5)


def write(file):
    tokens, silent = vocabulary()
    out = gguf.GGUFWriter(file, "llama")
    out.add_context_length(SLOT)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(HIDDEN)
    out.add_block_count(LAYERS)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("llama")
    out.add_token_list(list(tokens))
    out.add_token_types(list(tokens.values()))
    out.add_token_scores([0.0] * len(tokens))
    out.add_unk_token_id(UNKNOWN)
    out.add_bos_token_id(BEGIN)
    out.add_eos_token_id(END)
    out.add_chat_template(TALK)
    for name, tensor in weights(len(tokens), silent):
        out.add_tensor(f"{name}.weight", tensor)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def serve(file, port, key):
    options = xllamacpp.CommonParams()
    options.model.path = str(file)
    options.hostnames = ["127.0.0.1"]
    options.port = port
    options.api_keys = [key]
    options.n_ctx = SLOTS * SLOT
    options.n_parallel = SLOTS
    options.cpuparams.n_threads = 1
    options.endpoint_metrics = True
    options.embedding = True
    options.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(options)
    print("llama.cpp serves at", server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    file = pathlib.Path(sys.argv[1])
    if not file.exists():
        write(file)
    serve(file, int(sys.argv[2]), sys.argv[3])
