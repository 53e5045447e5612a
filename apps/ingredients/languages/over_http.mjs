// Matches ingredients over HTTP: works for a Sluice server, whatever its store, and writes into the kitchen's database.
//
// A job brings its mention with it, such as {"raw": "200 g basil leaves"}. Effect and end of the job are in two databases:
// the kitchen decides each job's mention once, and a job that comes again gets the same answer.
//
//   node over_http.mjs take recipe < mentions.ndjson
//   node over_http.mjs work --queues scraper,recipe --db postgres://USER@HOST/DATABASE
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { Client, PermanentError, RetryError } from 'sluice-client'

// Classes of SQLSTATE that another attempt may mend: connection, rollback, resources, not now, system.
const TRANSIENT = ['08', '40', '53', '55', '57', '58']

const { values: flags, positionals: [verb, source] } = parseArgs({ allowPositionals: true, options: {
  db: { type: 'string', default: process.env.INGREDIENTS_DB ?? '' }, // URL of the kitchen (or INGREDIENTS_DB)
  queues: { type: 'string', default: 'scraper,recipe' }, // sources to claim from
  slots: { type: 'string', default: '10' }, // how many to match at a time
  lease: { type: 'string', default: '180' }, // seconds that a claim holds without being renewed
  work: { type: 'string', default: '0' }, // seconds that each job takes besides, for tests
} })
const [slots, lease, seconds] = [flags.slots, flags.lease, flags.work].map(Number)
const client = new Client() // of SLUICE_URL and SLUICE_TOKEN

async function work () {
  const worker = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
  const resolver = 'node ' + worker
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort())
  const kitchen = new pg.Pool({ connectionString: flags.db, max: slots })
  kitchen.on('error', (error) => console.error(`connection broke: ${error.message}`))
  await client.work(flags.queues.split(','), (job) => match(kitchen, resolver, job),
    { worker, signal: stop.signal, concurrency: slots, lease: `${lease}s` })
  await kitchen.end()
}

async function match (kitchen, resolver, job) {
  const { raw, faults = 0 } = job.payload
  let made
  try {
    const { rows: [{ heard }] } = await kitchen.query('select ingredients.heard($1, $2, $3, $4)', [job.id, job.queue, raw, faults])
    const { rows } = await kitchen.query('select ingredients.match($1, $2, $3, $4)', [heard, job.id, job.attempt, resolver])
    made = rows[0].match
  } catch (error) {
    throw await failed(kitchen, resolver, job, error)
  }
  await sleep(seconds * 1000, undefined, { signal: job.signal })
  return made
}

// Writes the failed attempt on the trail, and returns the error that says how the job goes on.
async function failed (kitchen, resolver, job, error) {
  if (!(error instanceof pg.DatabaseError)) return error // of the connection: nothing can be written now
  const permanent = !TRANSIENT.includes(error.code.slice(0, 2))
  const last = permanent || job.attempt >= job.maxAttempts
  await kitchen.query('select ingredients.note_failure($1, $2, $3, $4, $5)', [job.id, job.attempt, resolver, error.message, last])
  return permanent ? new PermanentError(error.message) : new RetryError({ message: error.message })
}

async function take () {
  const mentions = async function * () {
    for await (const line of createInterface({ input: process.stdin })) yield { queue: source, payload: JSON.parse(line) }
  }
  const { stored, refused } = await client.enqueueMany(mentions())
  for (const { index, error } of refused) console.error(`mention ${index + 1}: ${error.message}`)
  console.log(`${stored} mentions of ${source} taken in`)
  if (refused.length > 0) process.exitCode = 1
}

const verbs = { take, work }
if (!verbs[verb] || (verb === 'take' && !source)) {
  console.error('usage: node over_http.mjs take SOURCE | work [flags]')
  process.exit(2)
}
await verbs[verb]()
