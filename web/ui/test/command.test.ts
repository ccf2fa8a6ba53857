import {describe, expect, it} from 'vitest'
import {settings, split} from '../src/lib/command'

describe('command', () => {
  it.each([
    ['python3 -m topsail model:f', ['python3', '-m', 'topsail', 'model:f']],
    [`a 'b c' "d \\"e\\"" f\\ g ''`, ['a', 'b c', 'd "e"', 'f g', '']],
    ['  ', []],
    [`x"y"'z'`, ['xyz']],
  ])('splits %s', (text, words) => expect(split(text)).toEqual(words))
  it('says which quote is open', () => expect(() => split(`a "b`)).toThrow(/not closed/))
  it('reads settings', () => expect(settings('A=1\n\nB=x=y')).toEqual({A: '1', B: 'x=y'}))
  it('says which line is none', () => expect(() => settings('A')).toThrow('"A" is not NAME=VALUE'))
})
