package rollup

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/stat"
)

// figures are the counts of a queue or of one of its tenants, as they are stored in a JSON object.
type figures struct {
	Counts stat.Counts    `json:"counts"`
	Wait   stat.Histogram `json:"wait"`
	Run    stat.Histogram `json:"run"`
	Total  stat.Histogram `json:"total"`
	Level  *stat.Level    `json:"level,omitempty"`
}

func countsOf(s stat.Stat) figures { return figures{s.Counts, s.Wait, s.Run, s.Total, s.Level} }

func (f figures) stat(queue, tenant string, at time.Time, every time.Duration) stat.Stat {
	return stat.Stat{Queue: queue, Tenant: tenant, At: at, Every: every, Counts: f.Counts, Wait: f.Wait, Run: f.Run, Total: f.Total, Level: f.Level}
}

// Body is a part as SQL stores keep it until it is merged: a JSON object. Its keys are the names of
// tenants, and the empty name for the whole queue.
func (p Part) Body() (string, error) {
	body := make(map[string]figures, len(p.Stats))
	for _, s := range p.Stats {
		if twice, ok := body[s.Tenant]; ok {
			both := twice.stat("", "", p.At, 0)
			both.Merge(s)
			s = both
		}
		body[s.Tenant] = countsOf(s)
	}
	text, err := json.Marshal(body)
	return string(text), err
}

// PartOf parses the result of Body.
func PartOf(at time.Time, queue, body string) (Part, error) {
	part := Part{At: at.UTC(), Queue: queue}
	var read map[string]figures
	if err := json.Unmarshal([]byte(body), &read); err != nil {
		return part, fmt.Errorf("statistics of queue %q at %s: %w", queue, at, err)
	}
	for tenant, f := range read {
		part.Stats = append(part.Stats, f.stat(queue, tenant, part.At, stat.Fine))
	}
	return part, nil
}

// Stored is a row as SQL stores keep it. The counts of the whole queue are in columns, and the
// counts of tenants in a JSON object by name.
type Stored struct {
	Key
	Counts           stat.Counts
	Wait, Run, Total string
	Level            string // null as JSON: nobody looked
	Tenants          string
}

// Stored returns the row to store.
func (r *Row) Stored() (Stored, error) {
	out := Stored{Key: r.Key, Counts: r.Whole.Counts}
	tenants := make(map[string]figures, len(r.Tenants))
	for name, t := range r.Tenants {
		tenants[name] = countsOf(*t)
	}
	for _, column := range []struct {
		text *string
		of   any
	}{{&out.Wait, r.Whole.Wait}, {&out.Run, r.Whole.Run}, {&out.Total, r.Whole.Total}, {&out.Level, r.Whole.Level}, {&out.Tenants, tenants}} {
		text, err := json.Marshal(column.of)
		if err != nil {
			return out, err
		}
		*column.text = string(text)
	}
	return out, nil
}

// Row parses a stored row.
func (s Stored) Row() (*Row, error) {
	row := NewRow(s.Key)
	row.Whole.Counts = s.Counts
	var tenants map[string]figures
	for _, column := range []struct {
		text string
		to   any
	}{{s.Wait, &row.Whole.Wait}, {s.Run, &row.Whole.Run}, {s.Total, &row.Whole.Total}, {s.Level, &row.Whole.Level}, {s.Tenants, &tenants}} {
		if column.text == "" {
			continue // the caller did not ask for it
		}
		if err := json.Unmarshal([]byte(column.text), column.to); err != nil {
			return nil, fmt.Errorf("statistics of queue %q at %s: %w", s.Queue, s.At, err)
		}
	}
	for name, f := range tenants {
		t := f.stat(s.Queue, name, s.At, s.Every)
		row.Tenants[name] = &t
	}
	return row, nil
}

// Bounds returns the time span of the parts that may belong to the buckets of a filter.
func Bounds(filter stat.Filter) (from, to time.Time) {
	from, to = filter.From, filter.To
	if whole := to.Truncate(filter.Every); !whole.Equal(to) {
		to = whole.Add(filter.Every)
	}
	return from, to
}

// Chosen reports whether a filter asks for a bucket of a queue.
func Chosen(filter stat.Filter, queue string, at time.Time) bool {
	return (len(filter.Queues) == 0 || slices.Contains(filter.Queues, queue)) && !at.Before(filter.From) && at.Before(filter.To)
}

// AddChosen counts a part if a filter asks for its bucket.
func (rows Rows) AddChosen(part Part, filter stat.Filter) {
	if Chosen(filter, part.Queue, part.At.Truncate(filter.Every)) {
		rows.Add(part, filter.Every)
	}
}

// AddStored counts a stored row. A row without a bucket length holds the body of a part.
func (rows Rows) AddStored(s Stored, filter stat.Filter) error {
	if s.Every == 0 {
		part, err := PartOf(s.At, s.Queue, s.Tenants)
		if err == nil {
			rows.AddChosen(part, filter)
		}
		return err
	}
	if filter.Tenant != "" {
		s.Tenants = oneTenant(filter.Tenant, s.Tenants)
	}
	row, err := s.Row()
	if err == nil {
		rows.Row(s.Key).Merge(row)
	}
	return err
}

// oneTenant wraps the counts of one tenant like the stored counts of all.
func oneTenant(name, figures string) string {
	if figures == "" {
		return ""
	}
	key, _ := json.Marshal(name) // a text always encodes
	return "{" + string(key) + ":" + figures + "}"
}

// Merged adds the stored counts to rows, and returns the rows to store, each with its largest
// tenants.
func Merged(rows []*Row, stored []Stored) ([]Stored, error) {
	before := make(map[Key]Stored, len(stored))
	for _, s := range stored {
		before[s.Key] = s
	}
	out := make([]Stored, len(rows))
	for i, r := range rows {
		if s, known := before[r.Key]; known {
			row, err := s.Row()
			if err != nil {
				return nil, err
			}
			r.Merge(row)
		}
		r.Cut()
		var err error
		if out[i], err = r.Stored(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
