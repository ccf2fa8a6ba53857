import type {InputType} from '../api/schema'

// quoted is a word for a POSIX shell.
export function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

// python writes JSON as a Python literal.
export function python(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([key, member]) => `${python(key)}: ${python(member)}`)
      .join(', ')}}`
  }
  return JSON.stringify(value)
}

export function curl(gateway: string, app: string, query: object, needsKey: boolean, inParts = false): string {
  const key = needsKey ? ` -H "X-Api-Key: $TOPSAIL_API_KEY"` : ''
  const accept = inParts ? ` -H 'Accept: text/event-stream'` : ''
  return `curl -s${inParts ? 'N' : ''} ${quoted(`${gateway}/${app}/predict`)}${key}${accept} -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(query))}`
}

// pythonClient needs no key in its text: the client reads TOPSAIL_API_KEY by itself.
export function pythonClient(gateway: string, app: string, query: Record<string, unknown>, type: InputType, inParts = false): string {
  const batch = 'input_batch' in query
  const options = Object.entries(query).filter(([name]) => !name.startsWith('input'))
  const named = options.map(([name, value]) => `, ${name === 'uid' ? 'user' : name}=${python(value)}`).join('')
  const given = `${python(app)}, ${literal(query.input_batch ?? query.inputs ?? query.input, type)}${named}`
  const answer = 'inputs' in query ? 'outputs' : 'output'
  const ask = inParts
    ? `for part in client.stream(${given}):\n    print(part, end="", flush=True)`
    : `print(${batch ? `client.predict_batch(${given})` : `client.predict(${given}).${answer}`})`
  return `${type === 'bytes' ? 'import base64\n' : ''}import topsail\n\nclient = topsail.Client(${python(gateway)})\n${ask}`
}

// literal is an input as the Python client takes it: bytes, where JSON has base64.
function literal(input: unknown, type: InputType): string {
  if (type !== 'bytes') return python(input)
  if (Array.isArray(input)) return `[${input.map((item) => literal(item, type)).join(', ')}]`
  return `base64.b64decode(${python(input)})`
}

const usual = ['http://127.0.0.1:1338', 'http://localhost:1338']

// deployInThreeLines is the way to a first model that a data scientist would take. Where this page is at the usual
// address, the client finds it by itself.
export function deployInThreeLines(management: string, gateway: string): string {
  const client = usual.includes(management) ? '' : `, client=topsail.Client(${python(gateway)}, admin_url=${python(management)})`
  return (
    `import topsail\n` +
    `model = topsail.deploy_python_function("adder", lambda inputs: [sum(x) for x in inputs], example=[1.0, 2.0, 3.5]${client})\n` +
    `print(model.predict([1.0, 2.0, 3.5]).output)`
  )
}
