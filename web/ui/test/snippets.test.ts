import {describe, expect, it} from 'vitest'
import {split} from '../src/lib/command'
import {curl, deployInThreeLines, python, pythonClient, quoted} from '../src/lib/snippets'

describe('snippets', () => {
  it('quotes for a shell', () => expect(quoted(`it's`)).toBe(`'it'\\''s'`))
  it('is safe with hostile input', () => {
    const text = curl('http://gw:1337', 'wine', {input: `'; rm -rf ~; '`}, true)
    expect(text).toContain(`'\\''; rm -rf ~; '\\''`)
    expect(text).toContain('$TOPSAIL_API_KEY')
  })
  it('writes Python', () => {
    expect(python({a: [true, null, 'x"'], b: 1.5})).toBe('{"a": [True, None, "x\\""], "b": 1.5}')
    expect(pythonClient('http://gw', 'a', {input: [1], uid: 'ann', explain: true}, 'doubles')).toContain(
      'client.predict("a", [1], user="ann", explain=True).output',
    )
    expect(pythonClient('http://gw', 'a', {input_batch: [[1], [2]]}, 'doubles')).toContain('predict_batch("a", [[1], [2]])')
    expect(pythonClient('http://gw', 'a', {input: 'AAEC'}, 'bytes')).toContain('base64.b64decode("AAEC")')
    expect(pythonClient('http://gw', 'a', {inputs: {x: 1}}, 'tensors')).toContain('client.predict("a", {"x": 1}).outputs')
    expect(pythonClient('http://gw', 'a', {input: {messages: []}, uid: 'ann'}, 'chat', true)).toContain(
      'for part in client.stream("a", {"messages": []}, user="ann"):\n    print(part, end="", flush=True)',
    )
  })
})

describe('the first model', () => {
  it('takes three lines', () => {
    expect(deployInThreeLines('http://127.0.0.1:1338', 'http://127.0.0.1:1337').split('\n')).toHaveLength(3)
    expect(deployInThreeLines('http://127.0.0.1:1338', 'http://127.0.0.1:1337')).not.toContain('client=')
    expect(deployInThreeLines('https://m.models.example', 'http://g')).toContain('admin_url="https://m.models.example"')
  })
})
