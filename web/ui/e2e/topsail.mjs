// A real Topsail to look at. TOPSAIL is the program, and FLOW_DIR a folder for what it keeps.
import {spawn} from 'node:child_process'
import {once} from 'node:events'
import {mkdirSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {eventually} from './browser.mjs'

// withTopsail runs one with a configuration for as long as look takes. It has a folder by its name.
export async function withTopsail(name, config, look) {
  const dir = join(process.env.FLOW_DIR, name)
  mkdirSync(dir, {recursive: true})
  writeFileSync(join(dir, 'topsail.toml'), config)
  const addresses = ['gateway', 'web', 'ops'].map((role) => `--${role}-addr=127.0.0.1:0`)
  const run = spawn(process.env.TOPSAIL, ['local', '--config', join(dir, 'topsail.toml'), '--data-dir', join(dir, 'data'), ...addresses])
  const ended = once(run, 'exit')
  let said = ''
  for (const from of [run.stdout, run.stderr]) from.on('data', (text) => (said += text))
  try {
    await eventually('the greeting', () => said.includes('Stop with Ctrl-C'))
    const url = (what) => said.match(new RegExp(`^${what} +(http://[0-9.:]+)`, 'm'))[1]
    await look({gateway: url('Gateway'), web: url('Web UI'), dir})
  } catch (err) {
    throw new Error(`${name}: ${err.message}\n${said.slice(-3000)}`, {cause: err})
  } finally {
    run.kill('SIGTERM')
    await ended
  }
}
