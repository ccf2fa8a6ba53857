// Writes src/api/schema.ts: the types of the management API, and what its document says of policies, from web/api/openapi.yaml.
import {readFileSync, writeFileSync} from 'node:fs'
import openapiTS, {astToString, COMMENT_HEADER} from 'openapi-typescript'
import {parse} from 'yaml'

const document = new URL('../api/openapi.yaml', import.meta.url)
const types = await openapiTS(document, {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  enumValues: true,
  emptyObjectsUnknown: true,
  defaultNonNullable: false,
})
const {Policy} = parse(readFileSync(document, 'utf8')).components.schemas
writeFileSync(
  new URL('src/api/schema.ts', import.meta.url),
  `${COMMENT_HEADER}${astToString(types)}export const policySchema = ${JSON.stringify(Policy)} as const;\n`,
)
