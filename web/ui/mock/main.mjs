// node mock/main.mjs [--port 1338] [--large | --empty] [--keys] [--local]
import {parseArgs} from 'node:util'
import {start} from './server.mjs'

const {values} = parseArgs({
  options: {
    port: {type: 'string', default: '1338'},
    large: {type: 'boolean'},
    empty: {type: 'boolean'},
    keys: {type: 'boolean'},
    local: {type: 'boolean'},
  },
})
const size = values.large ? 'large' : values.empty ? 'empty' : 'small'
const {url, world} = await start({port: Number(values.port), size, secured: values.keys, mode: values.local ? 'local' : 'cluster'})
console.log(`The mock is at ${url}/ui/`)
if (values.keys) console.log(`Sign in with ${[...world.secrets.values()][0]}`)
