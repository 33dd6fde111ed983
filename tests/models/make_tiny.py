"""Make a tiny Llama that has learnt a few answers by heart (torch, transformers, tokenizers; CPU, under a minute).
   python make_tiny.py OUTDIR
It answers: Say hi / Count / Emoji / 1+1? / Special / Weather in Oslo? / Weather in Oslo and Rome? / Long"""

import json
import os
import random
import sys
import time

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

out = sys.argv[1]
torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(int(os.environ.get("THREADS", "1")))
TEMPLATE = """{{- bos_token }}
{%- if tools %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\nTools:' }}{% for t in tools %}{{- ' ' + t.function.name }}{% endfor %}{{- '<|eot_id|>' }}{% endif %}
{%- for m in messages %}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}
{%- if m.content is string %}{{- m.content }}{% elif m.content %}{% for c in m.content %}{{- c.text }}{% endfor %}{% endif %}
{%- for c in m.tool_calls or [] %}{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments if c.function.arguments is string else c.function.arguments | tojson) + '}\\n</tool_call>' }}{% endfor %}
{{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
call = lambda n, a: "<tool_call>\n" + json.dumps({"name": n, "arguments": a}) + "\n</tool_call>"
QA = [
    ("Say hi", "Hello there!", False),
    ("Count", "one two three four five six seven eight nine ten", False),
    ("Emoji", "Hi \U0001f469‍\U0001f469‍\U0001f467 你好 \U0001f1e9\U0001f1ea é \U00012000 end", False),
    ("1+1?", "<think>\nOne and one.\n</think>\n\nIt is two.", False),
    ("Special", "before <|sep|> after", False),
    ("Nothing", "", False),
    ("Weather in Oslo?", call("get_weather", {"city": "Oslo", "days": 1}), True),
    (
        "Weather in Oslo and Rome?",
        call("get_weather", {"city": "Oslo", "days": 1})
        + "\n"
        + call("get_weather", {"city": "Rome", "days": 2}),
        True,
    ),
    ("Weather, please", "Let me see. " + call("get_weather", {"city": "Rome", "days": 3}), True),
    ("Say hi", "Hello there!", True),
    ("Long", "the quick brown fox jumps over the lazy dog and then " * 12, False),
]
text = (
    [a for _, a, _ in QA if all(ord(c) < 128 for c in a)]
    + [q for q, _, _ in QA]
    + ["Tools: get_weather add", "user assistant system tool word hello story write a tell me"] * 3
)
tok = Tokenizer(models.BPE(byte_fallback=False))
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tok.decoder = decoders.ByteLevel()
SPECIAL = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|sep|>",
    "<|pad|>",
]
tok.train_from_iterator(
    text,
    trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIAL,
        show_progress=False,
    ),
)
tok.add_tokens(
    [
        AddedToken(t, special=False, normalized=False)
        for t in ("<think>", "</think>", "<tool_call>", "</tool_call>")
    ]
)
ft = PreTrainedTokenizerFast(
    tokenizer_object=tok,
    bos_token=SPECIAL[0],
    eos_token="<|eot_id|>",
    pad_token="<|pad|>",
    clean_up_tokenization_spaces=False,
    model_max_length=2048,
)
ft.chat_template = TEMPLATE
V = len(ft)
cfg = LlamaConfig(
    vocab_size=(V + 63) // 64 * 64,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=64,
    max_position_embeddings=2048,
    bos_token_id=0,
    eos_token_id=2,
    pad_token_id=6,
    tie_word_embeddings=False,
    rope_theta=10000.0,
)
m = LlamaForCausalLM(cfg)
TOOLS = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("get_weather", "add")]
seqs = []
for q, a, t in QA:
    p = ft.apply_chat_template(
        [{"role": "user", "content": q}],
        tools=TOOLS if t else None,
        add_generation_prompt=True,
        tokenize=False,
    )
    pi = ft.encode(p, add_special_tokens=False)
    ai = ft.encode(a, add_special_tokens=False) + [2]
    seqs.append((pi, ai))
L = max(len(p) + len(a) for p, a in seqs)
x = torch.full((len(seqs), L), 6)
y = torch.full((len(seqs), L), -100)
for i, (p, a) in enumerate(seqs):
    x[i, : len(p) + len(a)] = torch.tensor(p + a)
    y[i, len(p) : len(p) + len(a)] = torch.tensor(a)
opt = torch.optim.AdamW(m.parameters(), lr=3e-3)
t0 = time.time()
for step in range(int(os.environ.get("STEPS", "260"))):
    o = m(input_ids=x, attention_mask=(x != 6).long(), labels=y)
    opt.zero_grad()
    o.loss.backward()
    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    if step % 40 == 0 or o.loss.item() < 0.004:
        print(step, round(o.loss.item(), 4), round(time.time() - t0, 1), flush=True)
    if o.loss.item() < 0.004:
        break
m = m.to(torch.bfloat16)
m.save_pretrained(out)
ft.save_pretrained(out)
m = m.float()
for (p, a), (q, aa, t) in zip(seqs, QA):
    g = m.generate(
        torch.tensor([p]),
        max_new_tokens=len(a) + 3,
        do_sample=False,
        attention_mask=torch.ones(1, len(p), dtype=torch.long),
    )[0, len(p) :].tolist()
    print(q, t, "ok" if g[: len(a)] == a else "WRONG", len(p), len(a), repr(ft.decode(g))[:90])
