"""What an engine's own classes say of a wire: `protocol.py vllm|sglang FILE`, FILE holds lines {path, request, reply}.

`request` and `reply` are JSON texts; a reply may be a stream of events. Each is read by the class that the engine's route
names. Prints {"checked": {path: count}, "problems": [...]}: what a class refuses, and members that it does not know, which
the engine would ignore or never write.
"""
import dataclasses
import json
import sys

from pydantic import BaseModel, TypeAdapter, ValidationError


def vllm():
    from vllm.entrypoints.openai.chat_completion import protocol as chat
    from vllm.entrypoints.scale_out.token_in_token_out import protocol as tokens
    from vllm.entrypoints.serve.tokenize import protocol as tokenize

    return {
        '/v1/chat/completions': (chat.ChatCompletionRequest, chat.ChatCompletionResponse, chat.ChatCompletionStreamResponse),
        '/v1/chat/completions/render': (chat.ChatCompletionRequest, tokens.GenerateRequest, None),
        '/inference/v1/generate': (
            tokens.GenerateRequest,
            tokens.GenerateTokensResponse | tokens.GenerateTextResponse,
            tokens.GenerateTokensStreamResponse | tokens.GenerateTextStreamResponse,
        ),
        '/v1/chat/completions/derender': (
            tokens.DerenderChatRequest | tokens.DerenderChatStreamRequest,
            chat.ChatCompletionResponse | tokens.DerenderChatStreamResponse,
            None,
        ),
        '/tokenize': (tokenize.TokenizeCompletionRequest | tokenize.TokenizeChatRequest, tokenize.TokenizeResponse, None),
    }


def sglang():
    from sglang.srt.entrypoints.openai import protocol as chat
    from sglang.srt.managers import io_struct as tasks

    return {
        '/v1/chat/completions': (chat.ChatCompletionRequest, chat.ChatCompletionResponse, chat.ChatCompletionStreamResponse),
        '/tokenize': (chat.TokenizeRequest, chat.TokenizeResponse, None),
        '/detokenize': (chat.DetokenizeRequest, chat.DetokenizeResponse, None),
        '/generate': (tasks.GenerateReqInput, None, None),
        '/parse_function_call': (tasks.ParseFunctionCallReq, None, None),
        '/separate_reasoning': (tasks.SeparateReasoningReqInput, None, None),
        '/pause_generation': (tasks.PauseGenerationReqInput, None, None),
        '/continue_generation': (tasks.ContinueGenerationReqInput, None, None),
        '/abort_request': (tasks.AbortReq, None, None),
        '/update_weight_version': (tasks.UpdateWeightVersionReqInput, None, None),
    }


def unknown(raw, read, place=''):
    """Members of `raw` that `read`, made of it, has no field for."""
    if isinstance(raw, list) and isinstance(read, (list, tuple)):
        for one, other in zip(raw, read):
            yield from unknown(one, other, f'{place}[]')
    elif isinstance(raw, dict):
        if isinstance(read, BaseModel):
            named = {name: name for name in type(read).model_fields}
            named |= {field.alias: name for name, field in type(read).model_fields.items() if field.alias}
        elif dataclasses.is_dataclass(read):
            named = {field.name: field.name for field in dataclasses.fields(read)}
        elif hasattr(read, '__struct_fields__'):
            named = {name: name for name in read.__struct_fields__}
        else:
            return
        for name, value in raw.items():
            if name not in named:
                yield f'{place}.{name}'
            else:
                yield from unknown(value, getattr(read, named[name]), f'{place}.{name}')


def read(kind, raw):
    if hasattr(kind, '__struct_fields__'):
        import msgspec

        # Tagged arrays between processes; from HTTP by names.
        return kind(**raw) if raw else kind()
    if dataclasses.is_dataclass(kind):
        return kind(**raw)
    # No coercion: an engine that is written in another language would not.
    return TypeAdapter(kind).validate_python(raw)


def main():
    wire, file = sys.argv[1:]
    kinds = {'vllm': vllm, 'sglang': sglang}[wire]()
    checked, problems = {}, set()
    with open(file) as lines:
        for line in lines:
            seen = json.loads(line)
            of_request, whole, event = kinds.get(seen['path'], (None, None, None))
            parts = [('request', of_request, seen['request'])]
            if seen['reply'].startswith('data:'):
                data = [part[5:].strip() for part in seen['reply'].split('\n\n') if part.startswith('data:')]
                parts += [('event', event, text) for text in data if text != '[DONE]']
            else:
                parts.append(('reply', whole, seen['reply']))
            for side, kind, text in parts:
                if kind is None or text == '':
                    continue
                raw = json.loads(text)
                name = f"{seen['path']} {side}"
                checked[name] = checked.get(name, 0) + 1
                try:
                    for one in raw if isinstance(raw, list) else [raw]:
                        problems |= {f'{name}: {place} is not known' for place in unknown(one, read(kind, one))}
                except (ValidationError, TypeError, ValueError) as error:
                    problems.add(f'{name}: {error}'[:600])
    print(json.dumps({'checked': checked, 'problems': sorted(problems)}))


main()
