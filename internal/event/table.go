package event

// The life of a job.
var (
	JobDuplicate = is("job duplicate", info, "client", "job queue [tenant]",
		"An enqueue stored nothing: the job in this line already has the key or the ID. Queue and tenant are those of the enqueue.")
	JobsClaimed = is("jobs claimed", debug, "worker, dispatcher, forwarder", "queue jobs",
		"A claim returned jobs.")
	JobClaimed = is("job claimed", info, "worker", "job queue [tenant] attempt priority",
		"A worker claimed a job and is about to run it.")
	JobDispatching = is("job dispatching", info, "dispatcher", "job queue [tenant] attempt priority ref [type] [task_queue] [labels]",
		"The intent is stored; the dispatcher now asks an engine to start the job's run.")
	JobDispatched = is("job dispatched", info, "dispatcher, upkeep", "job queue [tenant] attempt ref [reason]",
		"The engine has the run, and the job is dispatched.")
	StartFailed = is("start failed", wrong, "dispatcher", "job queue [tenant] attempt ref error",
		"The engine did not start a run. The job's next line has the consequence; without one, the dispatcher keeps the job and tries again.")
	JobCompleted = is("job completed", info, "worker, upkeep", "job queue [tenant] attempt duration [ref]",
		"The handler returned nil, or the engine's run succeeded.")
	JobFailed = is("job failed", wrong, "worker, upkeep", "job queue [tenant] attempt duration [ref] error [retry_in]",
		"An attempt failed; the job waits for its next attempt.")
	JobBuried = is("job buried", wrong, "worker, dispatcher, upkeep, forwarder", "job queue [tenant] attempt [duration] [ref] error reason",
		"The job is now a dead letter; `sluice dead ls` lists it.")
	JobReleased = is("job released", info, "worker, dispatcher, forwarder", "job queue [tenant] attempt [duration] [ref] reason [retry_in]",
		"The holder handed the job back; no attempt is counted.")
	JobDoubted = is("job uncertain", wrong, "upkeep, forwarder", "job queue [tenant] attempt [ref] error reason",
		"Nobody can learn any more whether the job's run happened; `sluice resolve` records the outcome.")
	RunAbsent = is("run absent", warn, "upkeep", "job queue [tenant] attempt ref reason",
		"The engine does not have the job's run: it never started the run, or it has forgotten the run. The reason says which.")
	RunAdopted = is("run adopted", warn, "dispatcher", "job queue [tenant] attempt ref begun_for",
		"The job's ref names a run that began for a lost job with the same key and payload; the run now counts for this job.")
	JobsRecovered = is("jobs recovered", warn, "upkeep", "queue requeued buried",
		"Leases expired: the holders of these jobs crashed or could not reach the store.")
	ClaimLost = is("claim lost", warn, "worker, dispatcher", "job queue [tenant] attempt reason",
		"The holder lost the job's lease; the handler's context ended.")
	SettlementRefused = is("settlement refused", warn, "worker, dispatcher, upkeep, forwarder", "job [queue] event error",
		"The store refused an outcome because another holder has the job, or the job has ended.")
)

// Limits.
var (
	TenantAtLimit = is("tenant at its limit", info, "worker, dispatcher", "queue [tenant] [tier] in_flight concurrency",
		"A tenant has as many jobs in flight as its limit allows; its other jobs wait. Checked at most every 10 s, while jobs wait for this limit.")
	TenantUnknown = is("tenant unknown", warn, "worker, dispatcher", "job queue tenant",
		"A job's tenant was deleted, or was never stored although tiers have limits; no tier's limits apply to it. Checked every 10 min in queues that serve tenants apart; logged once per tenant.")
	QueuePaused = is("queue paused", info, "worker, dispatcher", "queue by [reason]",
		"The holder learned that the queue is paused, and stops claiming from it.")
	QueueResumed = is("queue resumed", info, "worker, dispatcher", "queue by [reason]",
		"The holder learned that the queue is resumed, and claims from it again.")
)

// Workers.
var (
	WorkerStarted = is("worker started", info, "worker", "queues slots",
		"A worker starts to claim.")
	WorkerDraining = is("worker draining", info, "worker", "jobs within",
		"The worker was asked to stop, and waits for its running jobs.")
	WorkerStopped = is("worker stopped", info, "worker", "drained",
		"The worker stopped. `drained` is false if handlers were still running or outcomes could not be stored.")
	ClaimFailed = is("claim failed", wrong, "worker", "queue error",
		"The store did not answer a claim; the worker tries again.")
	NotSettled = is("settlements not stored", wrong, "worker", "jobs error",
		"The store did not take the outcomes of jobs; the worker tries again.")
	SettlementsGivenUp = is("settlements given up", wrong, "worker", "jobs",
		"The store did not take the outcomes of jobs for too long. Other holders get these jobs when their leases expire.")
	HookPanicked = is("hook panicked", wrong, "worker", "job queue [tenant] attempt what error",
		"The program's `OnFailure` or `Backoff` function panicked, or `Backoff` did not return in time; the worker settled the attempt without it.")
	NotRenewed = is("leases not renewed", wrong, "worker, forwarder", "jobs error",
		"The store did not renew leases; the holder tries again, and loses jobs whose leases expire.")
)

// Dispatchers.
var (
	DispatcherStarted = is("dispatcher started", info, "dispatcher", "engines [queues]",
		"A dispatcher starts to claim. Without `queues`, it serves all queues that name one of its engines.")
	DispatcherStopped = is("dispatcher stopped", info, "dispatcher", "jobs",
		"The dispatcher stopped; upkeep asks the engine about the jobs that it still held.")
	CycleDone = is("cycle done", info, "dispatcher", "queue claimed dispatched buried released held duration",
		"A cycle handed jobs to an engine.")
	DispatchFailed = is("dispatch failed", wrong, "dispatcher", "[queue] what error",
		"The store failed at the step in `what`; the dispatcher tries again.")
	DispatchRefused = is("nothing dispatched", wrong, "dispatcher", "queue error",
		"The dispatcher starts no run of the queue: it does not have the engine, or the engine forgets runs before upkeep can follow them. The error says what to change.")
	BreakerOpened = is("breaker opened", wrong, "dispatcher", "queue error",
		"The engine fails. The dispatcher stops claiming for it, counts no attempt, and tries again with one job.")
	BreakerClosed = is("breaker closed", info, "dispatcher", "queue",
		"The engine works again.")
	NotNoted = is("audit entry not written", wrong, "dispatcher", "queue event error",
		"The audit lacks an entry about a queue; the jobs stay dispatched.")
)

// Upkeep.
var (
	UpkeepLeads = is("upkeep leads", info, "upkeep", "task",
		"This upkeep leads the task (upkeep itself, or following the runs at an engine); the others stand by.")
	UpkeepLost = is("upkeep lost the lead", warn, "upkeep", "task",
		"The store did not answer, or rounds stalled for longer than the lease; another upkeep may lead the task now.")
	UpkeepDone = is("upkeep done", info, "upkeep", "recovered poisoned expired followed repaired pruned settings",
		"A round found something to do.")
	ProtocolsDiffer = is("protocols differ", warn, "upkeep", "reason",
		"Processes of different protocols share the store; `sluice holders` has them. Logged once for each set of them.")
	AuditHead = is("audit head", info, "upkeep", "head entries",
		"Upkeep sealed the audit. Keep these lines outside the store, for `sluice audit verify`.")
	AuditPruned = is("audit pruned", info, "upkeep", "notable full",
		"Upkeep deleted audit entries that were older than their retention.")
	UpkeepFailed = is("upkeep failed", wrong, "upkeep", "what error",
		"A part of a round failed; the other parts ran, and upkeep tries again.")
	RunsFollowed = is("runs followed", info, "upkeep", "queue settled unknown ending ended",
		"Runs ended and their jobs are settled; the engine gave no answer for the `unknown` ones.")
	OperationsDone = is("operations carried out", info, "upkeep", "jobs",
		"Operations acted on this many jobs.")
	OperationEnded = is("operation ended", info, "upkeep", "operation kind state done skipped failed [reason]",
		"An operation is done, was stopped, or failed; `sluice operations get` has the details.")
	SchedulesFired = is("schedules fired", info, "upkeep", "schedules jobs skipped missed refused",
		"Schedules were due. `skipped` counts fires without a job because an earlier job is unfinished. `missed` counts fires that were too late, `refused` those whose job the queue did not take.")
	FireRefused = is("fire refused", warn, "upkeep", "schedule reason",
		"A queue did not take the job of a schedule's fire: it is full, or the payload breaks a rule of it. `sluice schedules backfill` makes up for the fire.")
	BatchesAdvanced = is("batch callbacks enqueued", info, "upkeep", "jobs",
		"Batches completed, succeeded or had their first dead job. `jobs` counts the callbacks.")
	SchedulePaused = is("schedule paused", warn, "upkeep", "schedule",
		"Upkeep paused a schedule: too many of its fires failed in a row, or this program cannot read it. `sluice schedules show` has the reason.")
	ChangeRefused = is("scheduled change not applied", wrong, "upkeep", "queue change error",
		"Upkeep cannot apply a scheduled change of settings; logged once.")
)

// Alerts.
var (
	AlertFiring = is("alert firing", wrong, "upkeep", "[queue] rule severity value threshold message",
		"A rule's condition has held for long enough; `sluice alerts ls` lists firing alerts.")
	AlertResolved = is("alert resolved", info, "upkeep", "[queue] rule severity value threshold message",
		"A firing or silenced alert is over.")
	AlertSilenced = is("alert silenced", info, "upkeep", "[queue] rule severity value threshold message",
		"An alert would fire, but a silence covers it.")
	AlertNotNotified = is("alert not notified", warn, "upkeep", "[queue] rule receiver error retry_in",
		"A receiver did not take an alert's notification; upkeep tries again.")
	AlertGivenUp = is("alert given up", wrong, "upkeep", "[queue] rule receiver error",
		"A receiver took no notification of an alert for a week.")
)

// Forwarders.
var (
	Forwarded = is("jobs forwarded", debug, "forwarder", "queue claimed forwarded duplicates refused uncertain",
		"The forwarder sent jobs to the centre.")
	NotForwarded = is("not forwarded", warn, "forwarder", "queue error",
		"The centre or the local store does not answer; jobs wait here.")
	ForwardingAgain = is("forwarding again", info, "forwarder", "queue duration",
		"The forwarder sends jobs again, after the outage in `duration`.")
	OtherCentre = is("jobs on their way elsewhere", warn, "forwarder", "queue jobs centre",
		"Jobs were sent to a centre of another name, which never answered. Forward to that centre again, or cancel the jobs.")
	CentreUnreachable = is("centre unreachable", warn, "command", "error",
		"`sluice forward` cannot open the central store, and keeps trying; jobs wait here.")
)

// Servers.
var (
	ServerAnswers = is("server answers", info, "server", "address answers [login]",
		"The server listens at an address and answers these paths.")
	ServerOpen = is("server open to others", warn, "server", "address readable",
		"The address is not on loopback: anyone who reaches it can read the data in `readable` without a password. Let only probes and Prometheus reach it.")
	StoreAwaited = is("store awaited", warn, "server", "error",
		"The server cannot reach the store yet, and tries again; `/readyz` fails. Logged when the reason changes, and every minute.")
	ServerStarted = is("server started", info, "server", "[does]",
		"The store is open, and the server starts its work.")
	ServerDraining = is("server draining", info, "server", "within",
		"The server was asked to stop: `/readyz` fails, and claimed jobs are handed over.")
	ServerStopped = is("server stopped", info, "server", "",
		"All work of the server ended; it stops answering.")
	ServerMute = is("server does not answer itself", wrong, "server", "error",
		"The server does not answer its own request, so it does not ping systemd's watchdog, which restarts it.")
	CertificateKept = is("certificate not read", warn, "server", "error",
		"A file of the server's certificate, or of `--tls-client-ca`, changed and cannot be used; the server goes on with the old one.")
	ManagerNotNotified = is("systemd not told", warn, "server", "error",
		"The server could not send its state to systemd.")
	RequestFailed = is("request failed", wrong, "server", "[request] path error [stack]",
		"A bug of Sluice failed an HTTP request.")
	RequestRefused = is("request refused", info, "server", "request status code path [by]",
		"The HTTP API refused a request, and told the caller why.")
	SessionsEndEarly = is("sessions end with the process", info, "server", "",
		"Without `--session-key-file` the server seals sessions with a random key: a restart ends them, and other servers refuse them.")
	SignedIn = is("signed in", info, "server", "by role",
		"A person began a session, by a token or by the OpenID provider.")
	SignInFailed = is("sign-in failed", warn, "server", "error",
		"A person could not sign in.")
	RequestUnanswered = is("request unanswered", warn, "server", "request path error",
		"The store did not answer a request of the HTTP API, or its disk is full; the caller was told to send it again.")
)

// Events of all parts.
var (
	NotReported = is("progress not saved", warn, "worker", "jobs error",
		"The store did not take how far jobs have come; the worker tries again after a second.")
	HeartbeatFailed = is("heartbeat not written", warn, "worker, dispatcher, forwarder", "error",
		"The store did not take the holder's heartbeat; the holder tries again.")
	ProcessQuiesced = is("process quiesced", warn, "worker, dispatcher, upkeep, forwarder", "by [reason] lift",
		"Somebody told the process to quiesce: it claims nothing, and finishes what it has. The command in `lift` lets it work again.")
	ProcessResumed = is("process resumed", info, "worker, dispatcher, upkeep, forwarder", "[by] [reason]",
		"The process works again. Without `by`, the instruction ended by itself.")
	ProcessStopped = is("process told to stop", warn, "worker, dispatcher, upkeep, forwarder", "by [reason] lift",
		"Somebody told the process to stop: it drains, and ends. Until the command in `lift`, it stops again at each start.")
	NotForgotten = is("holder not forgotten", warn, "worker, dispatcher, upkeep, forwarder", "error",
		"The holder could not deregister; the store forgets it after 1 h.")
	ProgramTooOld = is("program too old for the schema", wrong, "worker, dispatcher, upkeep, forwarder", "error",
		"A newer Sluice migrated the database to a schema that this program must not use. The store refuses every call, and newer programs recover its jobs. The error says which program to deploy. Logged once, instead of all lines with this error.")
	StatsNotStored = is("statistics not stored", warn, "store", "error",
		"The process could not add its counts to the stored statistics. It tries again for 2 h, and counts nothing twice.")
	SignalsLost = is("signals lost", warn, "worker, dispatcher, forwarder, store", "error [retry_in]",
		"The process gets no signals of new jobs any more; polling finds them.")
	SettingsRefused = is("stored settings refused", warn, "client", "queue error",
		"Somebody stored invalid settings by plain SQL; the last valid ones apply.")
	LinesLeftOut = is("lines left out", info, "worker, dispatcher, upkeep, forwarder", "event [queue] lines",
		"An event had more lines than a queue may have in 10 s. This line has the event's level.")
)

// Events of a store on PostgreSQL, and of programs that `sluice work` runs.
var (
	JobsMissing = is("jobs missing", wrong, "store", "queue jobs",
		"Somebody deleted rows of jobs by plain SQL; claims or followers removed the rest. The audit names each job.")
	NotUnblocked = is("waiting jobs not looked at", warn, "store", "error",
		"The store did not check all jobs that wait for an ended job; upkeep checks them.")
	NotNotified = is("notification not sent", debug, "store", "error",
		"The store could not signal new jobs to workers; polling finds them.")
	LinesNotForgotten = is("idle lines not forgotten", warn, "store", "error",
		"The store could not remove tenants without jobs from the turns; the next round tries again.")
	GaugesNotRead = is("metrics not read", warn, "command", "what error",
		"A part of the store's metrics could not be read. The next read tries again; stale metrics disappear after a while.")
	SchedulesFailed = is("schedules not kept up to date", wrong, "command", "error",
		"A Temporal Schedule that starts a queue's cycles could not be made or changed, or no cycles are done here; the command tries again.")
	NoTraces = is("no traces", warn, "command", "reason",
		"Sluice cannot export traces as OpenTelemetry's variables ask; the command works without them.")
	TracesNotSent = is("traces not sent", warn, "command", "error [lines]",
		"The receiver of traces does not answer; the command goes on and loses these traces. Logged once a minute, with the number of lines left out.")
	TracesIncomplete = is("traces incomplete", warn, "command", "error",
		"Traces lack some attributes of the process that makes them.")
	OddLine = is("line of the program is no answer", warn, "command", "error",
		"A program with `--batch` printed a line that is no answer about a job.")
	ProgramSaid = is("program said", info, "command", "[job] [queue] line [cut]",
		"A program wrote a line to its standard error. Sluice logs every such line.")
	NotCheckpointed = is("checkpoint not saved", warn, "command", "job queue error",
		"The store did not take a job's checkpoint; a later attempt starts further back.")
)

var fields = []Field{
	{"holder", "the process that logs: `HOST:PID:NONCE`, as in `sluice holders`. Absent from lines of a store or a client"},
	{"job", "the job's id"},
	{"queue", "the job's queue"},
	{"tenant", "the job's tenant"},
	{"attempt", "the attempt's number, from 1"},
	{"priority", "the job's priority, 1 (first) to 10"},
	{"duration", "the time that it took: a handler from its start, a run from the claim, a cycle, an outage"},
	{"error", "the error, scrubbed"},
	{"reason", "the reason, scrubbed"},
	{"lift", "the command that lifts the instruction"},
	{"retry_in", "the time until the next try"},
	{"ref", "the name of the run at the engine"},
	{"type", "the engine's type of run, such as the type of a workflow"},
	{"task_queue", "the queue from which the engine's workers take the run"},
	{"labels", "the job's labels, as `name=value`, sorted by name; scrubbed"},
	{"jobs", "the number of jobs"},
	{"event", "the refused move, the missing audit entry, or the event whose lines were left out"},
	{"lines", "the number of lines left out"},
	{"line", "the program's line, scrubbed"},
	{"cut", "bytes left out of a line that was longer than 16 KiB"},
	{"operation", "the operation's ID"},
	{"kind", "the operation's kind"},
	{"state", "the operation's last state"},
	{"done", "jobs that the operation acted on"},
	{"skipped", "jobs that had changed before their turn; fires without a job"},
	{"missed", "fires of schedules that were too late"},
	{"schedule", "the name of a schedule"},
	{"schedules", "the number of due schedules"},
	{"failed", "jobs on which the operation failed"},
	{"begun_for", "the job for which a run began"},
	{"tier", "the tenant's tier"},
	{"in_flight", "the tenant's claimed and dispatched jobs"},
	{"concurrency", "the most jobs in flight"},
	{"by", "the actor of the change"},
	{"queues", "the served queues"},
	{"slots", "the most handlers that run at once"},
	{"within", "the time until handlers are cut off"},
	{"drained", "whether all handlers ended in time"},
	{"engines", "the names of the engines"},
	{"claimed", "claimed jobs"},
	{"dispatched", "claimed jobs that have a run"},
	{"buried", "jobs that became dead letters"},
	{"released", "jobs that were handed back"},
	{"held", "jobs of which the dispatcher does not know whether they have a run"},
	{"requeued", "jobs that wait again"},
	{"recovered", "jobs that wait again because their lease expired"},
	{"poisoned", "jobs that were buried because they lost too many holders"},
	{"expired", "jobs that were cancelled because nobody claimed them in time"},
	{"followed", "jobs settled by the outcome of their runs"},
	{"repaired", "repaired orphans"},
	{"pruned", "finished jobs that were deleted"},
	{"settings", "changes of settings that upkeep applied or found"},
	{"settled", "settled jobs, by move"},
	{"unknown", "jobs whose engine gave no answer"},
	{"ending", "runs of cancelled jobs that the engine was asked to end"},
	{"ended", "runs of cancelled jobs that ended"},
	{"change", "the number of the scheduled change"},
	{"task", "`upkeep`, or `follow` and an engine's name"},
	{"what", "the step that failed"},
	{"forwarded", "jobs that the centre has now"},
	{"duplicates", "jobs that the centre did not store because another job has the key"},
	{"refused", "jobs that break a rule of the centre; fires of schedules whose job the queue did not take"},
	{"uncertain", "jobs that the centre may have had"},
	{"centre", "the centre's name here"},
	{"head", "number and hash of the last seal of the audit's chain"},
	{"entries", "the number of the last sealed entry"},
	{"notable", "deleted entries of the level notable"},
	{"full", "deleted entries of the level full"},
	{"rule", "the alert rule"},
	{"severity", "note, warning, error or critical"},
	{"value", "the metric's value"},
	{"threshold", "the rule's threshold in this queue"},
	{"message", "the rule's summary and value, scrubbed"},
	{"receiver", "the receiver of notifications"},
	{"address", "the listening address"},
	{"answers", "the paths that the server answers"},
	{"readable", "the data that anyone can read there"},
	{"role", "the role of the session"},
	{"login", "the proof that callers of the HTTP API must give"},
	{"does", "the work that the server runs: upkeep, dispatch"},
	{"path", "the requested path"},
	{"request", "the id of the HTTP request, which its answer has too"},
	{"status", "the status code of the answer"},
	{"code", "the kind of problem, as in the answer"},
	{"stack", "the place in the program"},
}
