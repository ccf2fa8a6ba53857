// Answers in parts, as the gateway has them: word by word. What the query says chooses how the answer ends.
const event = (data, name) => `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(data)}\n\n`

export function parts(world, query, res) {
  const text = asked(query.input)
  const id = 4194304
  res.writeHead(200, {'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no'})
  if (/default/.test(text)) {
    return res.end(
      event({query_id: id, output: 'Try later.', default: true, default_explanation: 'No connected models found for query'}, 'end'),
    )
  }
  const turns = query.input?.messages?.length ?? 1
  const words = `This is answer ${Math.ceil(turns / 2)}: you said “${text}”, and a model would say much more about it, word by word.`.split(
    /(?<= )/,
  )
  const most = /cut/.test(text) ? 4 : words.length
  let sent = 0
  const timer = setInterval(() => {
    if (sent >= world.mostParts) return
    if (sent < most) return res.write(event({output: words[sent++]}))
    clearInterval(timer)
    if (most < words.length) res.end(event({error: 'Answer cut', cause: 'The replica left'}, 'error'))
    else res.end(event({query_id: id, output: words.join(''), default: false}, 'end'))
  }, world.partEvery)
  res.on('close', () => {
    clearInterval(timer)
    if (!res.writableEnded) world.cancelled++
  })
}

function asked(input) {
  if (typeof input === 'string') return input
  return input?.messages?.at(-1)?.content ?? ''
}
