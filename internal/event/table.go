package event

// The life of a job.
var (
	JobDuplicate = is("job duplicate", info, "client", "job queue [tenant]",
		"an enqueue stored nothing, because another job holds the key or the id: the job that the line names")
	JobsClaimed = is("jobs claimed", debug, "worker, dispatcher, forwarder", "queue jobs",
		"a claim got jobs")
	JobClaimed = is("job claimed", info, "worker", "job queue [tenant] attempt priority",
		"a worker has claimed a job, and is about to run it")
	JobDispatching = is("job dispatching", info, "dispatcher", "job queue [tenant] attempt priority ref [type] [task_queue] [labels]",
		"an engine is about to be asked to start the job's run; its intent is stored")
	JobDispatched = is("job dispatched", info, "dispatcher, upkeep", "job queue [tenant] attempt ref [reason]",
		"the engine has the run, and the job is dispatched")
	StartFailed = is("start failed", wrong, "dispatcher", "job queue [tenant] attempt ref error",
		"the engine did not start a run. The next line of the job says what becomes of it; without one, it is held, and asked for again")
	JobCompleted = is("job completed", info, "worker, upkeep", "job queue [tenant] attempt duration [ref]",
		"the handler returned nil, or the engine's run ended well")
	JobFailed = is("job failed", wrong, "worker, upkeep", "job queue [tenant] attempt duration [ref] error [retry_in]",
		"an attempt failed, and the job is tried again")
	JobBuried = is("job buried", wrong, "worker, dispatcher, upkeep, forwarder", "job queue [tenant] attempt [duration] [ref] error reason",
		"the job is a dead letter; `sluice dead` lists them")
	JobReleased = is("job released", info, "worker, dispatcher", "job queue [tenant] attempt [duration] [ref] reason [retry_in]",
		"the job was handed back, and no attempt is counted")
	JobDoubted = is("job uncertain", wrong, "upkeep, forwarder", "job queue [tenant] attempt [ref] error reason",
		"whether the job's run happened cannot be known any more; `sluice resolve` says what did")
	RunAbsent = is("run absent", warn, "upkeep", "job queue [tenant] attempt ref reason",
		"the engine does not have the run that the job names. It was never started, or is forgotten; the reason says which")
	RunAdopted = is("run adopted", warn, "dispatcher", "job queue [tenant] attempt ref begun_for",
		"the run that has the job's ref was begun for a job of the same key and payload that the store has lost; it counts as this one's")
	JobsRecovered = is("jobs recovered", warn, "upkeep", "queue requeued buried",
		"leases ran out: whoever held these jobs died, or could not reach the store")
	ClaimLost = is("claim lost", warn, "worker, dispatcher", "job queue [tenant] attempt reason",
		"a job is no longer the holder's; its handler's context has ended")
	SettlementRefused = is("settlement refused", warn, "worker, dispatcher, upkeep, forwarder", "job [queue] event error",
		"what became of a job was not stored, because somebody else has it, or has ended it")
)

// Limits.
var (
	TenantAtLimit = is("tenant at its limit", info, "worker, dispatcher", "queue [tenant] [tier] in_flight concurrency",
		"as many of a tenant's jobs are in flight as may be; its others wait. Looked for every 10 s at the most, while jobs wait for that")
	TenantUnknown = is("tenant unknown", warn, "worker, dispatcher", "job queue tenant",
		"the tenant of a job was deleted; or it was never stored although there are limits by tier, and the limits of no tier count for it. Looked for every 10 min, in queues that tell tenants apart, and told once for each tenant")
	QueuePaused = is("queue paused", info, "worker, dispatcher", "queue by [reason]",
		"the holder has noticed that the queue is paused; it claims no more of it")
	QueueResumed = is("queue resumed", info, "worker, dispatcher", "queue by [reason]",
		"the holder has noticed that the queue is open again")
)

// Workers.
var (
	WorkerStarted = is("worker started", info, "worker", "queues slots",
		"a worker begins to claim")
	WorkerDraining = is("worker draining", info, "worker", "jobs within",
		"it was told to end, and waits for the jobs that run")
	WorkerStopped = is("worker stopped", info, "worker", "drained",
		"it has ended; drained is false if handlers were still running, or if what became of jobs could not be stored")
	ClaimFailed = is("claim failed", wrong, "worker", "queue error",
		"the store could not be asked for jobs; it is tried again")
	NotSettled = is("settlements not stored", wrong, "worker", "jobs error",
		"what became of jobs could not be stored; it is tried again")
	SettlementsGivenUp = is("settlements given up", wrong, "worker", "jobs",
		"what became of jobs could not be stored for too long; they are handed out again when their leases end")
	HookPanicked = is("hook panicked", wrong, "worker", "job queue [tenant] attempt what error",
		"a function that the program gave the worker panicked: OnFailure or Backoff; the attempt was judged without it")
	NotRenewed = is("leases not renewed", wrong, "worker, forwarder", "jobs error",
		"the store could not be told that jobs are still held; it is tried again, and jobs whose lease ends are lost")
)

// Dispatchers.
var (
	DispatcherStarted = is("dispatcher started", info, "dispatcher", "engines [queues]",
		"a dispatcher begins to claim; without queues it serves all that name one of the engines")
	DispatcherStopped = is("dispatcher stopped", info, "dispatcher", "jobs",
		"it has ended; of the jobs that it still held, upkeep asks the engine")
	CycleDone = is("cycle done", info, "dispatcher", "queue claimed dispatched buried released held duration",
		"a cycle handed jobs to an engine")
	DispatchFailed = is("dispatch failed", wrong, "dispatcher", "[queue] what error",
		"the store could not be used for what is named; it is tried again")
	DispatchRefused = is("nothing dispatched", wrong, "dispatcher", "queue error",
		"no run of the queue is started: its engine forgets runs sooner than they could be followed, or is none that the dispatcher was given; the error says what to change")
	BreakerOpened = is("breaker opened", wrong, "dispatcher", "queue error",
		"the engine cannot be used; nothing more is claimed for it, and no attempt is counted. It is tried again with one job")
	BreakerClosed = is("breaker closed", info, "dispatcher", "queue",
		"the engine can be used again")
	NotNoted = is("audit not told", wrong, "dispatcher", "queue event error",
		"the audit lacks an entry about a queue; what was dispatched stays so")
)

// Upkeep.
var (
	UpkeepLeads = is("upkeep leads", info, "upkeep", "task",
		"this upkeep does the task, and others stand by: upkeep itself, or following the runs at an engine")
	UpkeepLost = is("upkeep lost the lead", warn, "upkeep", "task",
		"the store could not be asked, or the rounds stood still for longer than the lease; another may do the task by now")
	UpkeepDone = is("upkeep done", info, "upkeep", "recovered poisoned expired followed mended pruned settings",
		"a round found something to do")
	AuditHead = is("audit head", info, "upkeep", "head entries",
		"the audit was sealed; keep such lines outside of the store, for `sluice audit verify`")
	AuditPruned = is("audit pruned", info, "upkeep", "notable full",
		"entries of the audit were deleted that were kept long enough")
	UpkeepFailed = is("upkeep failed", wrong, "upkeep", "what error",
		"a part of a round could not be done; the others were, and it is tried again")
	RunsFollowed = is("runs followed", info, "upkeep", "queue settled unknown ending ended",
		"runs have ended, and their jobs are settled; unknown are those that the engine gave no answer for")
	OperationsDone = is("operations carried out", info, "upkeep", "jobs",
		"operations have acted on so many jobs")
	OperationEnded = is("operation ended", info, "upkeep", "operation kind state done skipped failed [reason]",
		"an operation is done, was stopped, or has failed; the operation itself tells more")
	PlanRefused = is("plan not carried out", wrong, "upkeep", "queue plan error",
		"a planned change of settings cannot be made; told once")
)

// Alerts.
var (
	AlertFiring = is("alert firing", wrong, "upkeep", "[queue] rule severity value threshold message",
		"what a rule of alerts asks for has held for long enough; `sluice alerts ls` lists those that fire")
	AlertResolved = is("alert resolved", info, "upkeep", "[queue] rule severity value threshold message",
		"an alert that fired, or was silenced, is over")
	AlertSilenced = is("alert silenced", info, "upkeep", "[queue] rule severity value threshold message",
		"an alert would fire, but somebody silenced it")
	AlertUntold = is("alert not told", warn, "upkeep", "[queue] rule receiver error retry_in",
		"a receiver could not be told of an alert; it is tried again")
	AlertGivenUp = is("alert given up", wrong, "upkeep", "[queue] rule receiver error",
		"a receiver could not be told of an alert for a week")
)

// Forwarders.
var (
	Forwarded = is("jobs forwarded", debug, "forwarder", "queue claimed forwarded duplicates refused uncertain",
		"jobs were sent to the centre")
	NotForwarded = is("not forwarded", warn, "forwarder", "queue error",
		"the centre, or the local store, cannot be used; jobs wait here")
	ForwardingAgain = is("forwarding again", info, "forwarder", "queue duration",
		"jobs are sent again, after so long")
	OtherCentre = is("jobs on their way elsewhere", warn, "forwarder", "queue jobs centre",
		"they were sent to a centre of another name, and no answer came: forward there again, or cancel them")
	CentreUnreachable = is("centre unreachable", warn, "command", "error",
		"`sluice forward` cannot open the central store, and goes on trying; jobs wait here")
)

// Servers.
var (
	ServerAnswers = is("server answers", info, "server", "address answers",
		"it listens at an address, and answers these paths there")
	ServerOpen = is("server open to others", warn, "server", "address readable",
		"an address is not on loopback: whoever reaches it can read what is named, without a password. Let none but probes and Prometheus reach it")
	StoreAwaited = is("store awaited", warn, "server", "error",
		"the store cannot be reached yet; it is tried again, and /readyz says so. Told when the reason changes, and every minute")
	ServerStarted = is("server started", info, "server", "[does]",
		"the store is open, and the work begins")
	ServerDraining = is("server draining", info, "server", "within",
		"it was told to end: /readyz says so, and what was claimed is handed over")
	ServerStopped = is("server stopped", info, "server", "",
		"all that it did has ended; it stops to answer")
	ServerMute = is("server does not answer itself", wrong, "server", "error",
		"systemd's watchdog is not told that it lives, and starts it anew")
	ManagerNotTold = is("systemd not told", warn, "server", "error",
		"systemd does not know how the service does")
	RequestFailed = is("request failed", wrong, "server", "path error stack",
		"a fault of ours, while a request was answered")
)

// Events of all parts.
var (
	HeartbeatFailed = is("heartbeat not written", warn, "worker, dispatcher, forwarder", "error",
		"the store could not be told that the holder is alive; it is tried again")
	NotForgotten = is("holder not forgotten", warn, "worker, dispatcher, upkeep, forwarder", "error",
		"the store could not be told that the holder has ended; it forgets it after an hour")
	ProgramTooOld = is("program too old for the schema", wrong, "worker, dispatcher, upkeep, forwarder", "error",
		"a newer Sluice has migrated the database to a schema that this program must not work on: the store refuses everything, and newer programs recover its jobs. The error says which program to deploy. Told once, in place of all lines that would give this error")
	StatsNotStored = is("statistics not stored", warn, "store", "error",
		"what the process counted could not be added to the store's statistics; it is tried again for two hours, and nothing is counted twice")
	SignalsLost = is("signals lost", warn, "worker, dispatcher, forwarder, store", "error [retry_in]",
		"nobody tells of new jobs any more; polling finds them")
	SettingsRefused = is("stored settings refused", warn, "client", "queue error",
		"somebody stored settings by plain SQL that make no sense; the last good ones count")
	LinesLeftOut = is("lines left out", info, "worker, dispatcher, upkeep, forwarder", "event [queue] lines",
		"of an event there were more lines than a queue may have in 10 s. It is as loud as the event itself")
)

// Events of a store on PostgreSQL, and of programs that `sluice work` runs.
var (
	JobsMissing = is("jobs missing", wrong, "store", "queue jobs",
		"claims, or those who follow runs, found jobs whose row somebody had deleted by plain SQL, and took away what was left of them. The audit names each")
	NotUnblocked = is("waiting jobs not looked at", warn, "store", "error",
		"not all jobs that wait for one that ended were looked at; upkeep does it")
	NotNotified = is("notification not sent", debug, "store", "error",
		"workers were not told of new jobs; polling finds them")
	LinesNotForgotten = is("idle lines not forgotten", warn, "store", "error",
		"tenants without jobs could not be taken out of the turns; the next round does it")
	GaugesNotRead = is("metrics not read", warn, "command", "what error",
		"a part of the figures of the store could not be read; it is tried again, and they are missing from the metrics after a while")
	SchedulesFailed = is("schedules not kept up to date", wrong, "command", "error",
		"a Temporal Schedule that begins the cycles of a queue could not be changed; it is tried again")
	NoTraces = is("no traces", warn, "command", "reason",
		"OpenTelemetry's variables ask for traces in a way that is not there; the work goes on without")
	TracesNotSent = is("traces not sent", warn, "command", "error [lines]",
		"the receiver of traces cannot be reached; the work goes on, and they are lost. Told once a minute, with how often it was not told since")
	TracesIncomplete = is("traces incomplete", warn, "command", "error",
		"traces do not tell all of who makes them")
	OddLine = is("line of the program is no answer", warn, "command", "error",
		"a program printed a line with --batch that says nothing of a job")
	ProgramSaid = is("program said", info, "command", "[job] [queue] line [cut]",
		"a program wrote a line on its standard error. The lines are not counted: all of them come")
	NotCheckpointed = is("checkpoint not saved", warn, "command", "job queue error",
		"how far a job has come could not be stored; a later attempt begins further back")
)

var fields = []Field{
	{"holder", "who logs: HOST:PID:NONCE, as in `sluice holders`. Not in lines of a store or a client"},
	{"job", "the job's id"},
	{"queue", "the job's queue"},
	{"tenant", "whom the job belongs to"},
	{"attempt", "which attempt this is, from 1"},
	{"priority", "the job's, 1 (first) to 10"},
	{"duration", "how long it took: the handler from its begin, the run from the claim, the cycle"},
	{"error", "what went wrong, scrubbed"},
	{"reason", "why, scrubbed"},
	{"retry_in", "when it is tried again"},
	{"ref", "the name of the run at the engine"},
	{"type", "what runs it there, such as the type of a workflow"},
	{"task_queue", "where the engine's workers take it from"},
	{"labels", "the job's labels, as name=value, by name; scrubbed"},
	{"jobs", "how many jobs it is about"},
	{"event", "the move that was not stored, the entry that the audit lacks, or the event whose lines were left out"},
	{"lines", "how many lines were left out"},
	{"line", "what a program said, scrubbed"},
	{"cut", "how many bytes of a line were left out, because it was longer than 16 KiB"},
	{"operation", "its id"},
	{"kind", "what it does"},
	{"state", "how it ended"},
	{"done", "jobs that it has acted on"},
	{"skipped", "jobs that had changed before it was their turn"},
	{"failed", "jobs that could not be acted on"},
	{"begun_for", "the job that a run was begun for"},
	{"tier", "the tenant's tier"},
	{"in_flight", "how many of the tenant's jobs are claimed or dispatched"},
	{"concurrency", "how many may be"},
	{"by", "who changed it"},
	{"queues", "the queues that are served"},
	{"slots", "how many handlers run at once"},
	{"within", "how long they may go on"},
	{"drained", "whether all ended in time"},
	{"engines", "the names of the engines"},
	{"claimed", "jobs that were taken from the queue"},
	{"dispatched", "of these, those that have a run"},
	{"buried", "those that are dead letters"},
	{"released", "those that were handed back"},
	{"held", "those of which it is not known whether they have a run"},
	{"requeued", "jobs that wait again"},
	{"recovered", "jobs that wait again because their lease ran out"},
	{"poisoned", "jobs that were buried because they lost too many holders"},
	{"expired", "jobs that were cancelled because nobody took them in time"},
	{"followed", "jobs that were settled by what became of their runs"},
	{"mended", "orphans that were set right"},
	{"pruned", "finished jobs that were deleted"},
	{"settings", "changes of settings that were planned, or found"},
	{"settled", "jobs by the move that their run's end gave rise to"},
	{"unknown", "jobs whose engine gave no answer"},
	{"ending", "runs of cancelled jobs that were asked to end"},
	{"ended", "those that have"},
	{"plan", "the number of the plan"},
	{"task", "upkeep, or `follow` and the name of an engine"},
	{"what", "what was being done"},
	{"forwarded", "jobs that the centre has now"},
	{"duplicates", "jobs that it did not store because another holds their key"},
	{"refused", "jobs that break a rule of it"},
	{"uncertain", "jobs that may have been there"},
	{"centre", "its name here"},
	{"head", "the number and the hash of the last seal of the audit's chain"},
	{"entries", "the number of the last entry that is sealed"},
	{"notable", "entries of the level notable"},
	{"full", "entries of the level full"},
	{"rule", "the rule of alerts"},
	{"severity", "how much it matters: note, warning, error or critical"},
	{"value", "the figure that the rule looks at"},
	{"threshold", "where it begins to matter in this queue"},
	{"message", "what is wrong, in a sentence: what the rule says, scrubbed"},
	{"receiver", "whom alerts are told to"},
	{"address", "where it listens"},
	{"answers", "the paths that are answered there"},
	{"readable", "what can be read there"},
	{"does", "what it runs: upkeep, dispatch"},
	{"path", "what was asked for"},
	{"stack", "where in the program"},
}
