"""tiny-llama directory -> GGUF (f16), for llama.cpp:  python make_gguf.py tiny-llama tiny-llama.gguf   (needs gguf, safetensors, numpy, torch)"""

import json
import sys

import gguf
import numpy as np
from safetensors.torch import load_file

d, out = sys.argv[1:3]
cfg = json.load(open(d + "/config.json"))
tk = json.load(open(d + "/tokenizer.json"))
w = load_file(d + "/model.safetensors")
g = gguf.GGUFWriter(out, "llama")
g.add_name("tiny-llama")
g.add_context_length(cfg["max_position_embeddings"])
g.add_embedding_length(cfg["hidden_size"])
g.add_block_count(cfg["num_hidden_layers"])
g.add_feed_forward_length(cfg["intermediate_size"])
g.add_head_count(cfg["num_attention_heads"])
g.add_head_count_kv(cfg["num_key_value_heads"])
g.add_layer_norm_rms_eps(cfg["rms_norm_eps"])
g.add_rope_dimension_count(cfg["head_dim"])
g.add_rope_freq_base(10000.0)
g.add_vocab_size(cfg["vocab_size"])
g.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
vocab = dict(tk["model"]["vocab"])
special = {}
for t in tk["added_tokens"]:
    vocab[t["content"]] = t["id"]
    special[t["id"]] = t["special"]
inv = {i: t for t, i in vocab.items()}
toks, types = [], []
for i in range(cfg["vocab_size"]):
    toks.append(inv.get(i, "[PAD%d]" % i))
    types.append(
        gguf.TokenType.UNUSED
        if i not in inv
        else (gguf.TokenType.CONTROL if special[i] else gguf.TokenType.USER_DEFINED)
        if i in special
        else gguf.TokenType.NORMAL
    )
g.add_tokenizer_model("gpt2")
g.add_tokenizer_pre("gpt-2")
g.add_token_list(toks)
g.add_token_types(types)
g.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tk["model"]["merges"]])
g.add_bos_token_id(0)
g.add_eos_token_id(2)
g.add_pad_token_id(6)
g.add_add_bos_token(True)
g.add_chat_template(open(d + "/chat_template.jinja").read())
H = cfg["num_attention_heads"]


def permute(x, h):
    return x.reshape(h, 2, x.shape[0] // h // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


N = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
for k, v in w.items():
    a = v.float().numpy()
    if k == "model.embed_tokens.weight":
        n = "token_embd.weight"
    elif k == "model.norm.weight":
        n = "output_norm.weight"
    elif k == "lm_head.weight":
        n = "output.weight"
    else:
        _, _, i, rest = k.split(".", 3)
        base = rest.rsplit(".", 1)[0]
        n = "blk.%s.%s.weight" % (i, N[base])
        if base in ("self_attn.q_proj", "self_attn.k_proj"):
            a = permute(a, H)
    g.add_tensor(n, np.ascontiguousarray(a.astype(np.float16) if a.ndim == 2 else a))
g.write_header_to_file()
g.write_kv_data_to_file()
g.write_tensors_to_file()
g.close()
