import {readdirSync, readFileSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {gzipSync} from 'node:zlib'
import {svelte} from '@sveltejs/vite-plugin-svelte'
import {type Plugin} from 'vite'
import {defineConfig} from 'vitest/config'

// The binary embeds what is built, so it is compressed here, once, and not at each request.
function precompressed(): Plugin {
  return {
    name: 'precompressed',
    apply: 'build',
    closeBundle() {
      const built = join(import.meta.dirname, 'dist')
      for (const entry of readdirSync(built, {recursive: true, withFileTypes: true})) {
        if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue
        const path = join(entry.parentPath, entry.name)
        writeFileSync(path + '.gz', gzipSync(readFileSync(path), {level: 9}))
      }
      writeFileSync(join(built, '.keep'), '') // Go embeds the folder also where nothing was built
    },
  }
}

const management = process.env.TOPSAIL ?? 'http://127.0.0.1:1338'

export default defineConfig({
  base: '/ui/',
  cacheDir: '../../build/vite', // node_modules is one for all clones
  plugins: [svelte(), precompressed()],
  resolve: process.env.VITEST ? {conditions: ['browser']} : {}, // the tests are of what runs in browsers
  build: {target: 'es2022', modulePreload: {polyfill: false}, assetsInlineLimit: 0, reportCompressedSize: true},
  server: {proxy: {'/api': management}},
  preview: {proxy: {'/api': management}},
  test: {include: ['test/**/*.test.ts'], environment: 'node'},
})
