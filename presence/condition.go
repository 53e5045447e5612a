package presence

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/feature"
)

// ConditionKind is the kind of a [Condition].
type ConditionKind string

// The kinds of conditions.
const (
	// ConditionEngineAway: the engine of the queue does not answer. A dispatcher claims nothing from the queue: its breaker is
	// open. Upkeep does not learn how runs end.
	ConditionEngineAway ConditionKind = "engine_away"
	// ConditionEngineTarget: the engine lacks or denies what the queue's settings name, such as the namespace.
	ConditionEngineTarget ConditionKind = "engine_target"
	// ConditionCodec: the engine's data converter failed, for example because its codec server or KMS is away.
	ConditionCodec ConditionKind = "codec"
	// ConditionUnknownEngine: the queue names an engine that the process does not have.
	ConditionUnknownEngine ConditionKind = "unknown_engine"
	// ConditionUnsafe: the engine would forget closed runs before upkeep notices them.
	ConditionUnsafe ConditionKind = "unsafe_following"
	// ConditionNoPollers: no worker of the engine waits for the runs of the queue, so started runs do not begin.
	ConditionNoPollers ConditionKind = "no_pollers"
	// ConditionUnfollowed: no upkeep follows the runs at an engine.
	ConditionUnfollowed ConditionKind = "unfollowed"
	// ConditionLost: the process has sent no heartbeat for longer than Silence, and holds jobs. [Holders] adds it.
	ConditionLost ConditionKind = "lost"
	// ConditionSilent: like ConditionLost, but the process holds no jobs.
	ConditionSilent ConditionKind = "silent"
	// ConditionTooOld: a newer program has changed the schema, so the store refuses all calls of the process. The store adds
	// it.
	ConditionTooOld ConditionKind = "too_old"
	// ConditionProtocol: the process has another [Protocol] than others, so one side may rely on what the other does not do.
	// [Holders] adds it.
	ConditionProtocol ConditionKind = "protocol"
	// ConditionOther: a program before this version stored a text without a kind.
	ConditionOther ConditionKind = "other"
)

// Condition is a reason why a process cannot do a part of its work. A process may have several.
type Condition struct {
	// Kind names the problem.
	Kind ConditionKind `json:"kind"`
	// Queue is the queue whose jobs wait. Empty: no single queue.
	Queue string `json:"queue,omitempty"`
	// Engine is the engine's name in the settings of queues. Empty: the condition concerns no engine.
	Engine string `json:"engine,omitempty"`
	// Since is when the condition began, by the clock of the process. Zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Text is the problem and its cause, in one line.
	Text string `json:"text"`
	// Repair is the command or act that removes the condition. Empty: not known.
	Repair string `json:"repair,omitempty"`
}

// NewCondition returns a condition with the command for its kind. A long text is cut in its middle.
func NewCondition(kind ConditionKind, queue, engine string, since time.Time, text string) Condition {
	return Condition{
		Kind: kind, Queue: queue, Engine: engine, Since: feature.Instant(since), Text: sluice.Brief(text), Repair: kind.mend(queue, engine),
	}
}

// EngineCondition returns the condition of a queue whose engine returned an error. Its kind depends on the error. Effect is what
// the process cannot do now, in a few words.
func EngineCondition(queue, engine string, since time.Time, effect string, err error) Condition {
	return NewCondition(engineFault(err), queue, engine, since, effect+": engine "+engine+": "+err.Error())
}

func engineFault(err error) ConditionKind {
	switch {
	case errors.Is(err, engine.ErrCodec):
		return ConditionCodec
	case errors.Is(err, engine.ErrTarget):
		return ConditionEngineTarget
	}
	return ConditionEngineAway
}

// TooOld returns the condition of a process whose program does not know a step of the schema.
func TooOld(step int) Condition {
	return Condition{Kind: ConditionTooOld, Text: fmt.Sprintf("its program is too old for the schema, which needs one that knows step %d", step)}
}

// OfEngine reports whether the process cannot use an engine. A dispatcher's breaker is open then.
func (c Condition) OfEngine() bool {
	return c.Kind == ConditionEngineAway || c.Kind == ConditionEngineTarget || c.Kind == ConditionCodec
}

// String returns the condition in one line, without its command.
func (c Condition) String() string {
	text := c.Text
	if c.Queue != "" {
		text = "queue " + c.Queue + ": " + text
	}
	if !c.Since.IsZero() {
		text += " (since " + feature.InstantText(c.Since) + ")"
	}
	return text
}

// mend returns the command that removes a condition of the kind, or shows more of it.
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

// EngineFlag returns the command-line flag of an engine, with placeholders for its address.
func EngineFlag(engine string) string {
	if engine == "temporal" {
		return "--temporal HOST:PORT"
	}
	return "--engine " + engine + "=temporal://HOST:PORT/NAMESPACE"
}

// Summary returns conditions in one line. Empty: there are none.
func Summary(conditions []Condition) string {
	all := make([]string, len(conditions))
	for i, c := range conditions {
		all[i] = c.String()
	}
	return strings.Join(all, "; ")
}

// SortConditions sorts conditions by queue, then by kind. Conditions without a queue come last.
func SortConditions(all []Condition) {
	slices.SortFunc(all, func(a, b Condition) int {
		if (a.Queue == "") != (b.Queue == "") {
			return strings.Compare(b.Queue, a.Queue)
		}
		return strings.Compare(a.Queue+"\x00"+string(a.Kind)+a.Text, b.Queue+"\x00"+string(b.Kind)+b.Text)
	})
}

// StoredConditions returns conditions as the SQL stores keep them: a JSON array. Empty: there are none.
func StoredConditions(all []Condition) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	kept := slices.Clone(all)
	for i := range kept {
		kept[i].Text, kept[i].Repair = sluice.StoredText(kept[i].Text), sluice.StoredText(kept[i].Repair)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("store conditions: %w", err)
	}
	return string(text), nil
}

// ConditionsFromRow reads the text of StoredConditions. A text of an older program becomes a ConditionOther.
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
