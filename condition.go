package sluice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ConditionKind is a kind of trouble that a process has.
type ConditionKind string

// The kinds of conditions.
const (
	// ConditionEngineAway: the engine of the queue does not answer. A dispatcher with it leaves the queue alone: its
	// breaker is open. Upkeep with it does not learn how runs end.
	ConditionEngineAway ConditionKind = "engine_away"
	// ConditionEngineTarget: the engine lacks what the queue's settings name, such as the namespace, or denies it.
	ConditionEngineTarget ConditionKind = "engine_target"
	// ConditionCodec: the data converter of the engine failed, such as a codec server or a KMS that is away.
	ConditionCodec ConditionKind = "codec"
	// ConditionUnknownEngine: the queue names an engine that the process was not given.
	ConditionUnknownEngine ConditionKind = "unknown_engine"
	// ConditionUnsafe: runs could not be followed to their end, because the engine would forget them too soon.
	ConditionUnsafe ConditionKind = "unsafe_following"
	// ConditionNoPollers: no worker of the engine waits for the runs of the queue. They are started and go nowhere.
	ConditionNoPollers ConditionKind = "no_pollers"
	// ConditionUnfollowed: nobody follows the runs at an engine.
	ConditionUnfollowed ConditionKind = "unfollowed"
	// ConditionLost: the process has told the store nothing for longer than HolderSilence, and holds jobs. Client.Holders
	// finds it.
	ConditionLost ConditionKind = "lost"
	// ConditionSilent: as ConditionLost, of a process that holds no jobs.
	ConditionSilent ConditionKind = "silent"
	// ConditionTooOld: a newer program has changed the schema, so the store refuses all that the process does. Store.Holders
	// finds it.
	ConditionTooOld ConditionKind = "too_old"
	// ConditionOther: a program before this version says so, in words alone.
	ConditionOther ConditionKind = "other"
)

// Condition is one thing that keeps a process from a part of its work. A process may have several at once.
type Condition struct {
	Kind ConditionKind `json:"kind"`
	// Queue is the one whose jobs are held up; empty: the condition is not about a single queue.
	Queue string `json:"queue,omitempty"`
	// Engine is the one that the condition is about, by the name that queues have for it; empty: none.
	Engine string `json:"engine,omitempty"`
	// Since is when it began, by the clock of the process; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Text says what is wrong, with its cause, in one line.
	Text string `json:"text"`
	// Mend is the command or the act that mends it; empty: not known.
	Mend string `json:"mend,omitempty"`
}

// NewCondition makes a condition with the command that mends its kind. The text is cut in its middle where it is long.
func NewCondition(kind ConditionKind, queue, engine string, since time.Time, text string) Condition {
	return Condition{
		Kind: kind, Queue: queue, Engine: engine, Since: storedInstant(since), Text: Brief(text), Mend: kind.mend(queue, engine),
	}
}

// EngineCondition makes the condition of a queue whose engine has answered with an error: its kind is that of the error.
// Effect says in a few words what the process cannot do now.
func EngineCondition(queue, engine string, since time.Time, effect string, err error) Condition {
	return NewCondition(engineFault(err), queue, engine, since, effect+": engine "+engine+": "+err.Error())
}

func engineFault(err error) ConditionKind {
	switch {
	case errors.Is(err, ErrEngineCodec):
		return ConditionCodec
	case errors.Is(err, ErrEngineTarget):
		return ConditionEngineTarget
	}
	return ConditionEngineAway
}

// TooOld makes the condition of a process whose program does not know a step that the schema needs.
func TooOld(step int) Condition {
	return Condition{Kind: ConditionTooOld, Text: fmt.Sprintf("its program is too old for the schema, which needs one that knows step %d", step)}
}

// OfEngine reports whether the condition says that an engine cannot be used. A dispatcher's breaker is open then.
func (c Condition) OfEngine() bool {
	return c.Kind == ConditionEngineAway || c.Kind == ConditionEngineTarget || c.Kind == ConditionCodec
}

// String says it in one line for people, without the command that mends it.
func (c Condition) String() string {
	text := c.Text
	if c.Queue != "" {
		text = "queue " + c.Queue + ": " + text
	}
	if !c.Since.IsZero() {
		text += " (since " + instant(c.Since) + ")"
	}
	return text
}

// mend is the command that mends a condition, or shows more of it.
func (k ConditionKind) mend(queue, engine string) string {
	check := "sluice engine check " + queue + " " + EngineFlag(engine)
	switch k {
	case ConditionEngineAway:
		return check + " shows when it answers; start the engine, or mend the way to it"
	case ConditionEngineTarget:
		return check + " shows what the engine lacks; make it there, or: sluice settings set " + queue + " run_namespace=NAME --reason WHY"
	case ConditionCodec:
		return "start the codec server, or mend the data converter of the dispatcher; then: sluice holders"
	case ConditionUnknownEngine:
		return "sluice dispatch " + queue + " " + EngineFlag(engine) + "; or sluice settings set " + queue + " engine=NAME --reason WHY"
	case ConditionUnsafe:
		return "sluice settings set " + queue + " follow_interval=5s --reason WHY; or let the engine keep ended runs longer"
	case ConditionNoPollers:
		return "start a worker of that task queue, or: sluice settings set " + queue + " run_task_queue=NAME --reason WHY; then: " + check
	case ConditionUnfollowed:
		return "sluice upkeep " + EngineFlag(engine)
	}
	return ""
}

// EngineFlag is the flag that gives a command of sluice the engine of a name, with a mark where its address belongs.
func EngineFlag(engine string) string {
	if engine == "temporal" {
		return "--temporal HOST:PORT"
	}
	return "--engine " + engine + "=temporal://HOST:PORT/NAMESPACE"
}

// Trouble says in one line for people what keeps a process from its work; empty: nothing does.
func Trouble(conditions []Condition) string {
	all := make([]string, len(conditions))
	for i, c := range conditions {
		all[i] = c.String()
	}
	return strings.Join(all, "; ")
}

// SortConditions puts conditions in order: by queue, those of no queue last, then by kind.
func SortConditions(all []Condition) {
	slices.SortFunc(all, func(a, b Condition) int {
		if (a.Queue == "") != (b.Queue == "") {
			return strings.Compare(b.Queue, a.Queue)
		}
		return strings.Compare(a.Queue+"\x00"+string(a.Kind)+a.Text, b.Queue+"\x00"+string(b.Kind)+b.Text)
	})
}

// StoredConditions is how the SQL stores keep conditions: a JSON array; empty: there is none.
func StoredConditions(all []Condition) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	kept := slices.Clone(all)
	for i := range kept {
		kept[i].Text, kept[i].Mend = StoredText(kept[i].Text), StoredText(kept[i].Mend)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("store conditions: %w", err)
	}
	return string(text), nil
}

// ConditionsFromRow reads what StoredConditions gave. A sentence, as programs before this version stored it, becomes one
// condition of kind ConditionOther.
func ConditionsFromRow(stored string) []Condition {
	if stored == "" {
		return nil
	}
	var all []Condition
	if err := json.Unmarshal([]byte(stored), &all); err != nil {
		return []Condition{{Kind: ConditionOther, Text: stored}}
	}
	return all
}
