// split parts a command as a POSIX shell would, without its expansions. It throws where a quote is not closed.
export function split(command: string): string[] {
  const words: string[] = []
  let word: string | null = null
  let quote = ''
  for (let i = 0; i < command.length; i++) {
    const c = command.charAt(i)
    if (quote === "'") {
      if (c === "'") quote = ''
      else word += c
    } else if (c === '\\' && i + 1 < command.length && (quote === '' || /["\\$`]/.test(command.charAt(i + 1)))) {
      word = (word ?? '') + command.charAt(++i)
    } else if (quote === '"') {
      if (c === '"') quote = ''
      else word += c
    } else if (c === "'" || c === '"') {
      quote = c
      word ??= ''
    } else if (/\s/.test(c)) {
      if (word !== null) words.push(word)
      word = null
    } else {
      word = (word ?? '') + c
    }
  }
  if (quote !== '') throw new Error(`A quote is not closed: ${quote}. Close it, or write \\${quote}.`)
  if (word !== null) words.push(word)
  return words
}

// settings reads NAME=VALUE lines, as of an environment.
export function settings(text: string): Record<string, string> {
  const result: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const cut = line.indexOf('=')
    if (cut < 1) throw new Error(`"${line.trim()}" is not NAME=VALUE. Write one on each line.`)
    result[line.slice(0, cut).trim()] = line.slice(cut + 1)
  }
  return result
}
