// The types of the pages are written by hand. This holds them to the API's document, member by member.
import {readFileSync} from 'node:fs'
import {join} from 'node:path'
import ts from 'typescript'
import {expect, it} from 'vitest'
import {parse} from 'yaml'

interface Schema {
  type?: string | string[]
  $ref?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  allOf?: Schema[]
  additionalProperties?: boolean | Schema
}

const root = join(import.meta.dirname, '..')
const document = parse(readFileSync(join(root, '..', 'api', 'openapi.yaml'), 'utf8')) as {components: {schemas: Record<string, Schema>}}
const schemas = document.components.schemas
const file = ts.createSourceFile('types.ts', readFileSync(join(root, 'src', 'api', 'types.ts'), 'utf8'), ts.ScriptTarget.Latest, true)

const notShown = new Set(['Page', 'Problem', 'Catalog', 'Plan', 'Restored']) // generic, or of the command line only
// Parts of schemas that have a name of their own here.
const named: Record<string, string[]> = {
  Pool: ['Scheduler', 'pools'],
  Process: ['Cluster', 'processes'],
  Server: ['Cluster', 'servers'],
  Alarm: ['Cluster', 'alarms'],
  AppStage: ['App', 'stages'],
  StageUsage: ['Usage', 'stages'],
}
const open = new Set(['Policy'])

function members(): Map<string, Map<string, {optional: boolean; type: ts.TypeNode}>> {
  const found = new Map<string, Map<string, {optional: boolean; type: ts.TypeNode}>>()
  file.forEachChild((node) => {
    if (!ts.isInterfaceDeclaration(node)) return
    const parents = (node.heritageClauses ?? []).flatMap(({types}) => types.map((type) => type.getText()))
    const own = new Map(parents.flatMap((parent) => [...(found.get(parent) ?? [])]))
    for (const member of node.members) {
      if (ts.isPropertySignature(member) && member.type)
        own.set(member.name.getText(), {optional: member.questionToken !== undefined, type: member.type})
    }
    found.set(node.name.text, own)
  })
  return found
}

function part([schema = '', member = '']: string[]): Schema {
  return whole(schemas[schema] ?? {}).properties?.[member]?.items ?? {}
}

// whole is a schema with the parts that it is made of.
function whole(schema: Schema): Schema {
  const parts = [schema, ...(schema.allOf ?? []).map((of) => whole(of.$ref ? (schemas[of.$ref.split('/').at(-1) ?? ''] ?? {}) : of))]
  return {
    ...(parts.some(({properties}) => properties) && {properties: Object.assign({}, ...parts.map(({properties}) => properties))}),
    required: parts.flatMap(({required}) => required ?? []),
  }
}

// kindOf is the outer shape of a type, which both sides have.
function kindOf(type: ts.TypeNode): string {
  const text = type.getText()
  if (ts.isArrayTypeNode(type) || text === 'Series') return 'array'
  if (
    /^('[^']*'( \| )?)+$/.test(text) ||
    text === 'string' ||
    /^(InputType|Role|ReplicaState|Health|AuditKind)$/.test(text) ||
    /^NonNullable/.test(text)
  )
    return 'string'
  if (text === 'number' || text === '1') return 'number'
  if (text === 'boolean' || text === 'true') return 'boolean'
  if (text === 'unknown') return 'any'
  return 'object'
}

function shapeOf(schema: Schema): string {
  if (schema.$ref) return shapeOf(schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {})
  if (schema.allOf?.[0]) return shapeOf(schema.allOf[0])
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'integer') return 'number'
  return type ?? 'any'
}

const types = members()
const compared = [
  ...Object.entries(schemas).filter(([name]) => !notShown.has(name)),
  ...Object.entries(named).map(([name, at]) => [name, part(at)] as const),
]
  .map(([name, schema]) => [name, whole(schema)] as const)
  .filter(([, schema]) => schema.properties)

it.each(compared)('%s is as the document says', (name, schema) => {
  const own = types.get(name)
  expect(own, `types.ts has no ${name}`).toBeDefined()
  const here = [...(own ?? [])].map(([member, {optional, type}]) => `${member}${optional ? '?' : ''}: ${kindOf(type)}`)
  const there = Object.entries(schema.properties ?? {}).map(
    ([member, of]) => `${member}${schema.required?.includes(member) ? '' : '?'}: ${shapeOf(of)}`,
  )
  if (open.has(name)) expect(here).toEqual(expect.arrayContaining(there))
  else expect(here.sort()).toEqual(there.sort())
})

it('knows the same words', () => {
  const words = (name: string) => {
    let found = ''
    file.forEachChild((node) => {
      if (ts.isTypeAliasDeclaration(node) && node.name.text === name) found = node.type.getText()
    })
    return [...found.matchAll(/'([^']*)'/g)].map(([, word]) => word).sort()
  }
  expect(words('InputType')).toEqual([...(schemas.InputType?.enum ?? [])].sort())
  expect(words('Role')).toEqual([...(schemas.Role?.enum ?? [])].sort())
  expect(words('ReplicaState')).toEqual([...(schemas.Replica?.properties?.state?.enum ?? [])].sort())
  expect(words('AuditKind')).toEqual([...(schemas.AuditEntry?.properties?.kind?.enum ?? [])].sort())
})
