// The output of a replica: some lines at once, and then one now and then.
const sentences = [
  'INFO topsail.runner: batch of 12 in 4.1 ms',
  'INFO topsail.runner: batch of 31 in 7.9 ms',
  'DEBUG topsail.health: answered a probe in 0.2 ms',
  'WARNING model: feature 3 is outside the training range (127.0 > 120.0)',
  'INFO topsail.runner: batch of 8 in 3.2 ms',
  'ERROR model: ValueError: Input contains NaN.\n  File "model.py", line 14, in predict\n    return forest.predict(inputs)',
]

export function logs(replica, query, res) {
  const lines = Math.min(10000, Number(query.get('lines') ?? 100))
  const line = (i, at) => `${new Date(at).toISOString()} ${sentences[(i * 7) % sentences.length]}\n`
  res.writeHead(200, {'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store'})
  let text = `${new Date(Date.now() - lines * 800).toISOString()} INFO topsail: serving ${replica.model}:${replica.version} as ${replica.id}\n`
  for (let i = 1; i < lines; i++) text += line(i, Date.now() - (lines - i) * 800)
  res.write(text)
  if (query.get('follow') !== 'true') return res.end()
  let i = lines
  const timer = setInterval(() => res.write(line(i++, Date.now())), 800)
  res.on('close', () => clearInterval(timer))
}
