package audit

import "github.com/sluice-queue/sluice"

// The kinds of objects that an entry can be about.
const (
	ObjectJob    sluice.Object = "job"
	ObjectQueue  sluice.Object = "queue"
	ObjectTenant sluice.Object = "tenant"
	ObjectTier   sluice.Object = "tier"
	ObjectAlert  sluice.Object = "alert"
	// ObjectOperation is an operation. Its name is the operation's id.
	ObjectOperation sluice.Object = "operation"
	// ObjectLimit is a named limit that queues share.
	ObjectLimit sluice.Object = "limit"
	// ObjectToken is a token of the HTTP API.
	ObjectToken sluice.Object = "token"
	// ObjectSchedule is a schedule of recurring jobs.
	ObjectSchedule sluice.Object = "schedule"
	// ObjectBatch is a batch. Its name is the batch's id.
	ObjectBatch sluice.Object = "batch"
	// ObjectHolder is an instruction to processes. Its name is their target, such as `version 1.4.0`.
	ObjectHolder sluice.Object = "holder"
	// ObjectPolicy holds for the whole store. Its name is `queues`: which new queues the store makes.
	ObjectPolicy sluice.Object = "policy"
	// ObjectNote is a note on a group of dead letters. Its name is the fingerprint.
	ObjectNote sluice.Object = "note"
	// ObjectAudit is the audit itself. Its name is `keep` for retention, `head` for heads of the chain that were published.
	ObjectAudit sluice.Object = "audit"
	// ObjectStore is the store itself. Its name is the task of maintenance, such as `vacuum`.
	ObjectStore sluice.Object = "store"
)

// Objects lists the kinds of objects.
func Objects() []sluice.Object {
	return []sluice.Object{
		ObjectJob, ObjectQueue, ObjectTenant, ObjectTier, ObjectAlert, ObjectOperation, ObjectLimit, ObjectToken, ObjectSchedule, ObjectBatch,
		ObjectHolder, ObjectPolicy, ObjectNote, ObjectAudit, ObjectStore,
	}
}

// The events that are no moves of the state machine.
const (
	// EventLost: the store refused a write because its token is not the job's.
	EventLost sluice.Event = "lost"
	// EventPrune: retention deleted entries of the audit.
	EventPrune sluice.Event = "prune"
	// EventMaintain: a person had the store maintained. After has what came of it.
	EventMaintain sluice.Event = "maintain"
	// EventMissing: a claim or upkeep found that somebody had deleted a job's row, and deleted its remaining rows.
	EventMissing sluice.Event = "job missing"
	// EventTerminate: a person asked upkeep to terminate an orphan run. After names the run.
	EventTerminate sluice.Event = "terminate"
	// EventBeside: a person let a job run beside its orphan run. After names the run.
	EventBeside sluice.Event = "beside open run"
	// EventEdit: a person changed a waiting job. Before and After have the changed fields, but of a payload the size.
	EventEdit sluice.Event = "edit"
	// EventHold: a producer or a person held a job. The reason says why.
	EventHold sluice.Event = "hold"
	// EventReleaseHold: a person released a held job. Before is the hold.
	EventReleaseHold sluice.Event = "release hold"
	// EventChange: somebody changed a queue, tenant, tier, limit, schedule, alert rule or note, or the state or terms of an operation.
	EventChange sluice.Event = "change"
	// EventDelete: somebody deleted a finished job, a queue, a tenant, a tier, a limit, a schedule or the changes of an alert rule.
	EventDelete sluice.Event = "delete"
	// EventPause and EventResume: a person paused a batch, with all batches in it, or let it go on. The reason says why.
	EventPause  sluice.Event = "pause"
	EventResume sluice.Event = "resume"
	// EventCloseKey and EventOpenKey: somebody closed a key of a limit, or opened it. After has the key, and until when.
	EventCloseKey sluice.Event = "close key"
	EventOpenKey  sluice.Event = "open key"
	// EventFire: a person fired a schedule. After has the number of jobs, and the first and last instant.
	EventFire sluice.Event = "fire"
	// EventBatch: a dispatcher claimed jobs of a queue and started them at its engine. After has the counts.
	EventBatch sluice.Event = "dispatch batch"
	// EventBreaker: a dispatcher stopped claiming because it cannot use the queue's engine, or claims again. The reason says
	// which, and why.
	EventBreaker sluice.Event = "breaker"
	// EventAlertFires, EventAlertResolves and EventAlertHides: an alert fires, has ended, or fires while it is silenced.
	EventAlertFires    sluice.Event = "alert firing"
	EventAlertResolves sluice.Event = "alert resolved"
	EventAlertHides    sluice.Event = "alert silenced"
	// EventSilence and EventUnsilence: somebody silenced alerts for a while, or ended a silence. After names the alerts.
	EventSilence   sluice.Event = "silence"
	EventUnsilence sluice.Event = "unsilence"
	// EventHead: upkeep published a head of the chain in the log and to the receivers of alerts. After holds the head.
	EventHead sluice.Event = "head told"
	// EventContinue: a move to this store continued the chain of the other store. After holds the head of that chain, and the
	// last entry that the head covers.
	EventContinue sluice.Event = "chain continued"
	// EventAlertNotNotified: upkeep gave up notifying a receiver of an alert.
	EventAlertNotNotified sluice.Event = "alert not notified"
)
