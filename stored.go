package sluice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// storedBefore is the number of columns of a queue's row before the settings.
const storedBefore = 9

// storedSettings are the settings as stores keep them: every setting, and then the window of each rate.
var storedSettings = append(allSettings[:len(allSettings):len(allSettings)],
	Setting{"rate_per", "", "", kindPer, func(s *Settings) any { return &s.Rate }, 0, maxRate},
	Setting{"tenant_rate_per", "", "", kindPer, func(s *Settings) any { return &s.TenantRate }, 0, maxRate})

// AllSettings lists every setting, in the order of the columns of the queue table.
func AllSettings() []Setting { return slices.Clone(allSettings[:]) }

// StoredSettings lists the settings as stores keep them, in the order of the columns of the queue table. It has
// every setting, and then the window of each rate. The setting of a rate itself is kept as jobs per second.
func StoredSettings() []Setting { return slices.Clone(storedSettings) }

// QueueFromRow makes a queue of a row of an SQL store. The columns are name, version, changed_at, changed_by,
// reason, the store's clock, the two texts of [Queue.Columns], ByTenant, and the settings in the order of
// [StoredSettings].
//
// An invalid value, written by plain SQL, is no error, because the error would block the reading of all queues; see
// Wrong of [Queue].
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
	q.recorded, _ = row[6].(string)
	scheduled, _ := row[7].(string)
	q.ByTenant, _ = storedBool(row[8])
	q.readSettings(row[storedBefore:])
	q.readPlans(scheduled)
	return q, nil
}

// readSettings takes the valid stored values. It replaces an invalid value by the value of the last audit entry.
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

// readPlans takes the stored scheduled if they are a JSON array of objects.
func (q *Queue) readPlans(text string) {
	if text == "" {
		return
	}
	var scheduled []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &scheduled); err != nil {
		q.wrong(invalid("scheduled", "they are not what `sluice settings schedule` stores"))
		return
	}
	if len(scheduled) > 0 {
		q.Scheduled = json.RawMessage(text)
	}
}

// wrong notes that a stored value is invalid. The first note stays.
func (q *Queue) wrong(err error) {
	if q.Wrong == "" {
		q.Wrong = fmt.Sprintf("%v; it was stored by plain SQL, and the last good value counts; `sluice settings undo %s` puts that back", err, q.Name)
	}
}

// lastGoodOf returns settings with a good value of one setting: from the last audit entry, or the defaults.
func (q *Queue) lastGoodOf(d Setting) Settings {
	if recorded, ok := q.Recorded(); ok && d.checkRange(&recorded) == nil {
		return recorded
	}
	return DefaultSettings()
}

// lastGood returns the settings of the last audit entry if they are valid, else the defaults.
func (q *Queue) lastGood() Settings {
	if recorded, ok := q.Recorded(); ok && recorded.Check() == nil {
		return recorded
	}
	return DefaultSettings()
}

// Recorded returns the settings as the last audit entry has them. False: no entry has them. They differ from Settings
// if somebody changed the settings by plain SQL and no process has noticed yet.
func (q Queue) Recorded() (Settings, bool) { return recordedTexts.settings(q.recorded) }

// Unrecorded reports whether somebody changed the settings by plain SQL and the audit lacks the change.
func (q Queue) Unrecorded() bool {
	recorded, ok := q.Recorded()
	return !ok || recorded != q.Settings
}

// Stored returns the queue as its next version, stored at an instant of the store's clock. Stores call it when they
// write a queue.
func (q Queue) Stored(at time.Time, act Act) Queue {
	q.Version++
	q.ChangedAt, q.ChangedBy, q.Reason, q.Now, q.Wrong = storedInstant(at), act.By, act.Reason, storedInstant(at), ""
	text, _ := json.Marshal(q.Settings) // settings that were checked can be written
	q.recorded = string(text)
	return q
}

// Columns returns two texts that stores keep beside the settings, both JSON. Recorded is the settings of the last audit
// entry. Plans is the scheduled changes, empty if there are none.
func (q Queue) Columns() (recorded, scheduled string) { return q.recorded, string(q.Scheduled) }

// ForAudit returns the queue as the audit keeps it: the settings by name, and the scheduled changes.
func (q Queue) ForAudit() map[string]any {
	named := q.Settings.named()
	if len(q.Scheduled) > 0 {
		named["scheduled"] = q.Scheduled
	}
	return named
}

// RecordedForAudit is [Queue.ForAudit] with the settings of the last audit entry. Nil: no entry has them.
func (q Queue) RecordedForAudit() any {
	recorded, ok := q.Recorded()
	if !ok {
		return nil
	}
	q.Settings = recorded
	return q.ForAudit()
}

// keepGoodSchema replaces a stored payload_schema that is no JSON Schema by the last good one. It needs a checker.
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

// maxRecordedTexts is the most texts of settings that recordedTexts remembers. Most queues share a few.
const maxRecordedTexts = 1000

// recordedTexts remembers the settings of texts in the audit. Upkeep compares the settings of every queue with the
// audit each second, and parsing a text would be most of that work.
var recordedTexts = recordedReader{read: make(map[string]Settings)}

// recordedReader parses each text once.
type recordedReader struct {
	mu   sync.Mutex
	read map[string]Settings
}

// settings returns the settings in a text, with the defaults for missing names. False: the text is not valid.
func (t *recordedReader) settings(text string) (Settings, bool) {
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
	if len(t.read) >= maxRecordedTexts {
		clear(t.read)
	}
	t.read[text] = settings
	return settings, true
}
