package sluice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// storedBefore is how many columns of a queue's row come before the settings.
const storedBefore = 9

// storedSettings are what stores keep of the settings: each of them, and the window of each rate.
var storedSettings = append(allSettings[:len(allSettings):len(allSettings)],
	Setting{"rate_per", "", "", kindPer, func(s *Settings) any { return &s.Rate }, 0, maxRate},
	Setting{"tenant_rate_per", "", "", kindPer, func(s *Settings) any { return &s.TenantRate }, 0, maxRate})

// AllSettings lists every setting, in the order of the columns of the queue table.
func AllSettings() []Setting { return slices.Clone(allSettings[:]) }

// StoredSettings lists what stores keep of the settings, in the order of the columns of the queue table: all of them, and
// then the window of each rate, of which the setting itself is kept as jobs per second.
func StoredSettings() []Setting { return slices.Clone(storedSettings) }

// QueueFromRow makes a queue of a row as the SQL stores keep it: name, version, changed_at, changed_by,
// reason, the store's clock, what Columns gave, whether it serves its tenants in turns, and then the settings in the order of StoredSettings. What
// somebody wrote by plain SQL and makes no sense is no error, because it would keep all queues from being
// read: see Queue.Wrong.
func QueueFromRow(row []any) (Queue, error) {
	if len(row) != storedBefore+len(storedSettings) {
		return Queue{}, fmt.Errorf("a queue's row has %d columns instead of %d", len(row), storedBefore+len(storedSettings))
	}
	var q Queue
	var named, versioned bool
	q.Name, named = row[0].(string)
	q.Version, versioned = row[1].(int64)
	if !named || !versioned {
		return Queue{}, fmt.Errorf("the row of queue %v has columns of other types than expected", row[0])
	}
	changedAt, _ := row[2].(time.Time) // it may be infinite
	q.ChangedAt = storedInstant(changedAt)
	q.ChangedBy, _ = row[3].(string)
	q.Reason, _ = row[4].(string)
	now, _ := row[5].(time.Time)
	q.Now = storedInstant(now)
	q.told, _ = row[6].(string)
	plans, _ := row[7].(string)
	q.ByTenant, _ = storedBool(row[8])
	q.readSettings(row[storedBefore:])
	q.readPlans(plans)
	return q, nil
}

// readSettings takes the stored values that make sense, and of the others what the audit last told.
func (q *Queue) readSettings(values []any) {
	for i, d := range storedSettings {
		err := d.SetStored(&q.Settings, values[i])
		if err == nil {
			err = d.checkRange(&q.Settings)
		}
		if err != nil {
			_ = d.SetStored(&q.Settings, d.Stored(q.lastGoodOf(d))) // it fits
			q.wrong(err)
		}
	}
	if err := q.Settings.checkTogether(); err != nil {
		q.Settings = q.lastGood()
		q.wrong(err)
	}
}

func (q *Queue) readPlans(text string) {
	if text == "" {
		return
	}
	var plans []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		q.wrong(invalid("plans", "they are not what «sluice settings schedule» stores"))
		return
	}
	if len(plans) > 0 {
		q.Plans = json.RawMessage(text)
	}
}

// wrong notes that a stored value does not count.
func (q *Queue) wrong(err error) {
	if q.Wrong == "" {
		q.Wrong = fmt.Sprintf("%v; it was stored by plain SQL, and the last good value counts; «sluice settings undo %s» puts that back", err, q.Name)
	}
}

// lastGoodOf gives settings of which one is as it was told last, or the default.
func (q *Queue) lastGoodOf(d Setting) Settings {
	if told, ok := q.Told(); ok && d.checkRange(&told) == nil {
		return told
	}
	return DefaultSettings()
}

// lastGood gives the settings that were told last, or the defaults.
func (q *Queue) lastGood() Settings {
	if told, ok := q.Told(); ok && told.Check() == nil {
		return told
	}
	return DefaultSettings()
}

// Told gives the settings as the audit last told of them; false: it never did. They differ from Settings if
// somebody changed those by plain SQL and nobody has noticed yet.
func (q Queue) Told() (Settings, bool) { return toldTexts.settings(q.told) }

// Untold reports whether the settings were changed by plain SQL, and the audit does not tell of it.
func (q Queue) Untold() bool {
	told, ok := q.Told()
	return !ok || told != q.Settings
}

// Stored is the queue as its next version, stored at an instant of the store's clock. Stores call it when
// they write a queue.
func (q Queue) Stored(at time.Time, act Act) Queue {
	q.Version++
	q.ChangedAt, q.ChangedBy, q.Reason, q.Now, q.Wrong = storedInstant(at), act.By, act.Reason, storedInstant(at), ""
	text, _ := json.Marshal(q.Settings) // settings that were checked can be written
	q.told = string(text)
	return q
}

// Columns gives what the stores keep of a queue beside its settings, as JSON: what the audit was told of
// them, and the plans, empty if there are none.
func (q Queue) Columns() (told, plans string) { return q.told, string(q.Plans) }

// ForAudit gives what the audit keeps of a queue before and after a change: the settings by their names, and
// the plans.
func (q Queue) ForAudit() map[string]any {
	named := q.Settings.named()
	if len(q.Plans) > 0 {
		named["plans"] = q.Plans
	}
	return named
}

// ToldForAudit is ForAudit with the settings that were told last, nil if none were.
func (q Queue) ToldForAudit() any {
	told, ok := q.Told()
	if !ok {
		return nil
	}
	q.Settings = told
	return q.ForAudit()
}

// keepGoodSchema lets the last payload_schema count that was told, if the stored one is no JSON Schema. Only
// a program with a checker can say so.
func (q *Queue) keepGoodSchema(checker PayloadChecker) {
	schema := q.Settings.PayloadSchema
	if checker == nil || schema == "" {
		return
	}
	err := checker.Compile(schema)
	if err == nil {
		return
	}
	if good := q.lastGood().PayloadSchema; good != schema {
		q.Settings.PayloadSchema = good
		q.wrong(invalid("payload_schema", strings.TrimSpace(err.Error())))
	}
}

// maxToldTexts bounds how many texts of settings are remembered. Most queues share a few.
const maxToldTexts = 1000

// toldTexts remembers the settings that texts of the audit stand for. Upkeep compares the settings of every queue with what
// the audit was told of them, each second, and to read a text takes longer than all else that it does for the queue.
var toldTexts = toldReader{read: make(map[string]Settings)}

// toldReader reads each text once.
type toldReader struct {
	mu   sync.Mutex
	read map[string]Settings
}

// settings gives the settings that a text stands for, with the defaults for those that it does not name; false: it cannot be
// read.
func (t *toldReader) settings(text string) (Settings, bool) {
	t.mu.Lock()
	settings, known := t.read[text]
	t.mu.Unlock()
	if known {
		return settings, true
	}
	settings = DefaultSettings()
	if text == "" || json.Unmarshal([]byte(text), &settings) != nil {
		return DefaultSettings(), false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.read) >= maxToldTexts {
		clear(t.read)
	}
	t.read[text] = settings
	return settings, true
}
