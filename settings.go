package sluice

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	maxCount = 10_000    // the highest value of settings that count something; stores keep them in 16 bits
	maxName  = 200       // the most bytes of settings that name something
	maxFlow  = 1_000_000 // the highest value of settings that count jobs in flight
)

// AuditLevel says which moves of a queue's jobs the stores write to the audit.
type AuditLevel string

// The levels. AuditNotable writes acts of persons, changes of settings, and the moves for which [Event.Notable] is
// true. AuditFull writes every move.
const (
	AuditNotable AuditLevel = "notable"
	AuditFull    AuditLevel = "full"
)

// Settings say how a queue behaves. They live in the store, every process reads a change within [SettingsInterval],
// and the audit keeps each change.
//
// Begin with [DefaultSettings], which has the defaults below. [Client.ChangeSettings] changes them, and package
// changes undoes and schedules changes. docs/settings.md has the ranges.
type Settings struct {
	Paused            bool          // nobody claims from the queue; jobs that run go on
	Lease             time.Duration // how long a claim holds unless renewed; default: 60 s
	Timeout           time.Duration // how long an attempt may run before its context ends; 0: no limit; default: 15 min
	MaxAttempts       int           // how many failed attempts bury a job; default: 3
	MaxRecoveries     int           // how many lost holders bury a job as poison; default: 5
	Backoff           Backoff       // the wait after a failed attempt
	RecoverInterval   time.Duration // how often upkeep looks for leases that ran out; default: 5 s
	RecoverBatch      int           // the most jobs that upkeep recovers at one look; default: 1000
	KeepCompleted     time.Duration // how long completed jobs stay; 0: for ever; default: 7 days
	KeepCancelled     time.Duration // how long cancelled jobs stay; 0: for ever; default: 7 days
	KeepDead          time.Duration // how long dead letters stay; 0: for ever; default: 90 days
	KeepResults       time.Duration // how long results stay; 0: as long as their jobs
	PayloadLimit      int           // the largest payload, in bytes; default: 1 MiB
	PayloadSchema     string        // the JSON Schema of payloads; empty: none
	Audit             AuditLevel    // default: AuditNotable
	Rate              Rate          // how many jobs may start per time; zero: no limit
	Burst             int           // how many jobs more may start at once after a lull; 0: none
	Concurrency       int           // the most jobs in flight; 0: no limit
	PausedUntil       time.Time     // when a paused queue opens by itself; zero: when somebody resumes it
	Ageing            float64       // the share of claims that begin with a lower priority, 0 to 1; default: 0.05
	Fair              bool          // tenants take turns by their weights
	TenantConcurrency int           // the most jobs in flight of a tenant without a limit of its own; 0: no limit
	TenantRate        Rate          // how many jobs of such a tenant may be claimed per time; zero: no limit
	TenantBurst       int           // how many more of them may be claimed at once after a lull; 0: none
	Batch             int           // the most jobs of one claim; 0: as many as the process has room for
	Interval          time.Duration // the least time between two claims of one process; 0: none
	ClaimAhead        time.Duration // how long before its due time an idle process may claim a job; 0: never before
	Jitter            time.Duration // the most by which a claimed job starts later, at random; 0: none
	Engine            string        // the engine that runs the jobs; empty: workers run them
	RunNamespace      string        // the engine's namespace; empty: the dispatcher's
	RunType           string        // the type of the engine's runs; empty: the queue's name
	RunTaskQueue      string        // the engine's task queue; empty: the queue's name
	RunTimeout        time.Duration // how long a run may take; 0: no limit
	RunRef            string        // the template of refs; empty: DefaultRunRef
	RunResults        bool          // keep the results of runs
	RetryRuns         bool          // retry a job whose run failed; false: bury it
	FollowInterval    time.Duration // how often upkeep asks the engine which runs have ended; default: 2 s
	MaxWaiting        int           // the most waiting jobs; 0: no limit; see package pressure
	TenantMaxWaiting  int           // the most waiting jobs of a tenant; 0: no limit
	Shed              bool          // if full, cancel waiting jobs of lower priority; false: refuse new jobs
	Limits            string        // the limits that the queue shares, with commas between; empty: none; see package limit
}

// DefaultSettings returns the settings of a queue that nobody has changed.
func DefaultSettings() Settings {
	return Settings{
		Lease:           60 * time.Second,
		Timeout:         15 * time.Minute,
		MaxAttempts:     3,
		MaxRecoveries:   5,
		Backoff:         Backoff{Base: 2 * time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second},
		RecoverInterval: 5 * time.Second,
		RecoverBatch:    1000,
		KeepCompleted:   7 * 24 * time.Hour,
		KeepCancelled:   7 * 24 * time.Hour,
		KeepDead:        90 * 24 * time.Hour,
		PayloadLimit:    1 << 20,
		Audit:           AuditNotable,
		Ageing:          0.05,
		FollowInterval:  2 * time.Second,
	}
}

// Keep returns how long finished jobs with an outcome stay. 0: for ever.
func (s Settings) Keep(outcome State) time.Duration {
	switch outcome {
	case StateCompleted:
		return s.KeepCompleted
	case StateCancelled:
		return s.KeepCancelled
	case StateDead:
		return s.KeepDead
	}
	return 0
}

// Queue is a named list of jobs with its settings.
type Queue struct {
	// Name is the name of the queue.
	Name string
	// Version counts the changes of the settings. 0: the queue is not stored yet.
	Version int64
	// Settings say how the queue behaves.
	Settings Settings
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
	// ByTenant says that the queue serves its tenants in turns, because of its settings or of limits for tenants or
	// tiers. Stores compute it and do not keep it.
	ByTenant bool
	// Scheduled are the scheduled changes, as JSON. Empty: none. Package changes reads and makes them, and upkeep
	// applies them.
	Scheduled json.RawMessage
	// Wrong says which rule a value breaks that somebody stored by plain SQL, and what to do. Settings has the last
	// good value instead. Empty: every value is valid.
	Wrong string
	// Now is the store's clock when the store read or stored the queue.
	Now time.Time

	recorded string // the settings as the last audit entry has them, as JSON; empty: no entry has them
}

// Setting describes one of the [Settings]. SQL, the API and the command line use the same name for it.
type Setting struct {
	// Name is the name as people write it. Stores keep a duration in milliseconds, in a column of this name with
	// the ending _ms.
	Name string
	// Meaning is one sentence for people.
	Meaning string
	// Source lists the requirements that asked for the setting. Empty: none.
	Source string

	kind  settingKind
	field func(*Settings) any
	low   int64
	high  int64
}

// settingKind is the kind of value that a setting has.
type settingKind int

const (
	kindBool settingKind = iota
	kindCount
	kindDuration
	kindFactor
	kindText
	kindRate
	kindInstant
	kindName
	kindPer
)

const day = 24 * time.Hour

// ms returns a duration in milliseconds.
func ms(d time.Duration) int64 { return d.Milliseconds() }

// allSettings lists every setting, in the order of the columns of the queue table.
var allSettings = [...]Setting{
	{"paused", "No job of the queue is claimed while it is true; what runs goes on.", "", kindBool, func(s *Settings) any { return &s.Paused }, 0, 0},
	{"lease", "How long a claim holds without being renewed; workers renew it on their own.", "C-41, E-3", kindDuration, func(s *Settings) any { return &s.Lease }, 100, ms(day)},
	{"timeout", "How long an attempt may run before its context ends; 0s: as long as it likes.", "C-38", kindDuration, func(s *Settings) any { return &s.Timeout }, 0, ms(30 * day)},
	{"max_attempts", "The failed attempt that buries a job.", "A-44, C-23", kindCount, func(s *Settings) any { return &s.MaxAttempts }, 1, maxCount},
	{"max_recoveries", "The lost holder that buries a job as poison.", "E-8", kindCount, func(s *Settings) any { return &s.MaxRecoveries }, 1, maxCount},
	{"backoff_base", "The wait after the first failed attempt.", "C-51", kindDuration, func(s *Settings) any { return &s.Backoff.Base }, 0, ms(30 * day)},
	{"backoff_factor", "What multiplies the wait with each further attempt.", "C-52", kindFactor, func(s *Settings) any { return &s.Backoff.Factor }, 1, 100},
	{"backoff_max", "The longest wait, before jitter.", "C-51", kindDuration, func(s *Settings) any { return &s.Backoff.Max }, 0, ms(30 * day)},
	{"backoff_jitter", "What is added to the wait by chance, from 0 up to this.", "C-51", kindDuration, func(s *Settings) any { return &s.Backoff.Jitter }, 0, ms(day)},
	{"backoff_full_jitter", "Draw the whole wait by chance instead of adding the jitter.", "", kindBool, func(s *Settings) any { return &s.Backoff.FullJitter }, 0, 0},
	{"recover_interval", "How often upkeep looks for leases that ran out.", "A-7, C-45", kindDuration, func(s *Settings) any { return &s.RecoverInterval }, 100, ms(day)},
	{"recover_batch", "How many jobs upkeep recovers at one look.", "D-36", kindCount, func(s *Settings) any { return &s.RecoverBatch }, 1, maxCount},
	{"keep_completed", "How long completed jobs are kept; 0s: for ever.", "C-82", kindDuration, func(s *Settings) any { return &s.KeepCompleted }, 0, ms(3650 * day)},
	{"keep_cancelled", "How long cancelled jobs are kept; 0s: for ever.", "", kindDuration, func(s *Settings) any { return &s.KeepCancelled }, 0, ms(3650 * day)},
	{"keep_dead", "How long dead letters are kept; 0s: for ever.", "", kindDuration, func(s *Settings) any { return &s.KeepDead }, 0, ms(3650 * day)},
	{"payload_limit", "The largest payload, in bytes.", "", kindCount, func(s *Settings) any { return &s.PayloadLimit }, 1, 64 << 20},
	{"payload_schema", "A JSON Schema that payloads must match, at enqueue and again before they run; empty: none.", "C-95", kindText, func(s *Settings) any { return &s.PayloadSchema }, 0, 1 << 20},
	{"audit", "Which moves are audited: notable ones, or full: every one. It becomes full where a queue is given an engine and nothing is said of the audit.", "", kindText, func(s *Settings) any { return &s.Audit }, 0, 16},
	{"rate", "How many jobs may start per time, such as 100/s or 500/5s, by all processes together: in no window of 5s more than 500; 0: no limit.", "D-36, H-10", kindRate, func(s *Settings) any { return &s.Rate }, 0, maxRate},
	{"burst", "How many jobs more than the rate may start in a window, and how many at once after a lull; 0: none, and starts are spread over the window.", "H-10", kindCount, func(s *Settings) any { return &s.Burst }, 0, maxFlow},
	{"concurrency", "How many jobs may be claimed or dispatched at the same time; 0: no limit.", "", kindCount, func(s *Settings) any { return &s.Concurrency }, 0, maxFlow},
	{"paused_until", "When a paused queue opens by itself; empty: when it is resumed.", "", kindInstant, func(s *Settings) any { return &s.PausedUntil }, 0, 0},
	{"ageing", "The share of claims that begin with another priority than 1, one of the nine by lot; 0: low priorities may starve.", "", kindFactor, func(s *Settings) any { return &s.Ageing }, 0, 1},
	{"fair", "Tenants take turns by their weights, whatever each has waiting; they do in every queue that has limits for tenants, too.", "H-16", kindBool, func(s *Settings) any { return &s.Fair }, 0, 0},
	{"tenant_concurrency", "How many jobs of one tenant may be claimed or dispatched at the same time, if nothing is said of the tenant or its tier; 0: no limit.", "A-24", kindCount, func(s *Settings) any { return &s.TenantConcurrency }, 0, maxFlow},
	{"tenant_rate", "How many jobs of one tenant may be claimed per time, if nothing is said of the tenant or its tier; 0: no limit.", "", kindRate, func(s *Settings) any { return &s.TenantRate }, 0, maxRate},
	{"tenant_burst", "How many jobs of one tenant more than its rate may be claimed in a window, and how many at once after a lull; 0: none.", "", kindCount, func(s *Settings) any { return &s.TenantBurst }, 0, maxFlow},
	{"batch", "How many jobs one claim takes at the most; 0: as many as the process has room for.", "D-18, D-36", kindCount, func(s *Settings) any { return &s.Batch }, 0, maxCount},
	{"interval", "The least time between two claims of the queue by one process; 0s: none.", "D-36", kindDuration, func(s *Settings) any { return &s.Interval }, 0, ms(day)},
	{"claim_ahead", "How long before it is due a job may be claimed by a process with nothing else to do, which starts it when it is due and never before; 0s: not at all.", "D-36", kindDuration, func(s *Settings) any { return &s.ClaimAhead }, 0, ms(day)},
	{"jitter", "By how much a claimed job starts later, drawn by lot from 0 up to this.", "D-18, D-24, D-36", kindDuration, func(s *Settings) any { return &s.Jitter }, 0, ms(day)},
	{"engine", "The engine that runs the jobs, by the name that dispatchers know it by; empty: workers run them.", "B-19", kindName, func(s *Settings) any { return &s.Engine }, 0, maxName},
	{"run_namespace", "The engine's namespace; empty: the one that the dispatcher is connected to.", "D-67", kindName, func(s *Settings) any { return &s.RunNamespace }, 0, maxName},
	{"run_type", "What the engine runs for a job, such as a workflow type; empty: what has the queue's name.", "D-36", kindName, func(s *Settings) any { return &s.RunType }, 0, maxName},
	{"run_task_queue", "The engine's task queue, whose workers run the jobs; empty: the one that has the queue's name.", "D-36, D-56", kindName, func(s *Settings) any { return &s.RunTaskQueue }, 0, maxName},
	{"run_timeout", "How long a run may take from its start; 0s: as long as it likes.", "", kindDuration, func(s *Settings) any { return &s.RunTimeout }, 0, ms(3650 * day)},
	{"run_ref", "How runs are named, from {queue}, {type}, {id}, {key} and {tenant}; empty: " + DefaultRunRef + ".", "D-24, D-72", kindName, func(s *Settings) any { return &s.RunRef }, 0, maxName},
	{"run_results", "Keep what runs return, which costs the engine a call for each.", "", kindBool, func(s *Settings) any { return &s.RunResults }, 0, 0},
	{"retry_runs", "A run that fails is the job's failed attempt, and another run its next; else it buries the job.", "D-53", kindBool, func(s *Settings) any { return &s.RetryRuns }, 0, 0},
	{"follow_interval", "How often upkeep asks the engine which runs have ended.", "", kindDuration, func(s *Settings) any { return &s.FollowInterval }, 100, ms(day)},
	{"max_waiting", "How many jobs may wait, due or not, before further ones are refused; 0: no limit. It holds approximately: each process counts 4 times a second.", "", kindCount, func(s *Settings) any { return &s.MaxWaiting }, 0, maxFlow},
	{"tenant_max_waiting", "How many jobs of one tenant may wait before further ones of it are refused; 0: no limit. Tenants then take turns.", "", kindCount, func(s *Settings) any { return &s.TenantMaxWaiting }, 0, maxFlow},
	{"shed", "If the queue or the tenant is full, cancel waiting jobs of lower priority to make room; false: refuse the new job.", "", kindBool, func(s *Settings) any { return &s.Shed }, 0, 0},
	{"limits", "The named limits that the queue shares with others, with commas between, such as bank,ledger; empty: none.", "", kindName, func(s *Settings) any { return &s.Limits }, 0, maxName},
	{"keep_results", "How long results of ended jobs are kept; 0s: as long as the jobs.", "", kindDuration, func(s *Settings) any { return &s.KeepResults }, 0, ms(3650 * day)},
}

// SettingNamed finds a setting by its name. An unknown name is an [ErrNotFound] that lists the names.
func SettingNamed(name string) (Setting, error) {
	names := make([]string, 0, len(allSettings))
	for _, s := range allSettings {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Setting{}, fmt.Errorf("setting %.60q: %w; there are: %s", name, ErrNotFound, strings.Join(names, ", "))
}

// Column returns the name of the setting's column in the SQL stores.
func (d Setting) Column() string {
	if d.kind == kindDuration || d.kind == kindPer {
		return d.Name + "_ms"
	}
	return d.Name
}

// Format writes the setting's value as people write it.
func (d Setting) Format(s Settings) string {
	switch v := d.field(&s).(type) {
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *time.Duration:
		return FormatDuration(*v)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *Rate:
		return v.String()
	case *time.Time:
		if !v.IsZero() {
			return v.UTC().Format(time.RFC3339Nano)
		}
	case *AuditLevel:
		return string(*v)
	case *string:
		return *v
	}
	return ""
}

// Parse reads the value that a person wrote into the setting's field. A text that is no such value is an
// [ErrInvalid]. Parse does not check the range; [Settings.Check] does.
func (d Setting) Parse(s *Settings, text string) error {
	var err error
	switch v := d.field(s).(type) {
	case *bool:
		*v, err = strconv.ParseBool(text)
	case *int:
		*v, err = strconv.Atoi(text)
	case *time.Duration:
		*v, err = ParseDuration(text)
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
	case *Rate:
		*v, err = ParseRate(text)
	case *time.Time:
		*v, err = parseInstant(text)
	case *AuditLevel:
		*v = AuditLevel(text)
	case *string:
		*v = text
	}
	if err != nil {
		return invalid(d.Name, fmt.Sprintf("%.60q is not %s", text, d.kind))
	}
	return nil
}

// String describes the kind, for errors.
func (k settingKind) String() string {
	return [...]string{"true or false", "a whole number", "a duration such as 30s, 5m or 7d", "a number", "a text", "a rate such as 100/s, 500/5s or 20/m", "an instant such as 2026-12-24T16:00:00Z", "a name", "a duration in milliseconds"}[k]
}

// Stored returns the value as the stores keep it: bool, int64 (a duration in milliseconds), float64, string or
// time.Time. A zero instant is nil.
func (d Setting) Stored(s Settings) any {
	switch v := d.field(&s).(type) {
	case *bool:
		return *v
	case *int:
		return int64(*v)
	case *time.Duration:
		return v.Milliseconds()
	case *float64:
		return *v
	case *Rate:
		if d.kind == kindPer {
			return v.perMillis()
		}
		return v.PerSecond()
	case *time.Time:
		if !v.IsZero() {
			return *v
		}
	case *AuditLevel:
		return string(*v)
	case *string:
		return *v
	}
	return nil
}

// SetStored takes a value as the stores keep it. A bool may also be 0 or 1, and an instant microseconds since 1970.
// Another type is an [ErrInvalid].
func (d Setting) SetStored(s *Settings, stored any) error {
	number, isNumber := stored.(int64)
	text, isText := stored.(string)
	var fits bool
	switch v := d.field(s).(type) {
	case *bool:
		*v, fits = storedBool(stored)
	case *int:
		*v, fits = int(number), isNumber
	case *time.Duration:
		*v, fits = time.Duration(number)*time.Millisecond, isNumber && number <= maxMillis && number >= -maxMillis
	case *float64:
		*v, fits = stored.(float64)
	case *Rate:
		fits = v.setStored(stored)
	case *time.Time:
		at, isInstant := stored.(time.Time)
		if isNumber {
			at = time.UnixMicro(number)
		}
		*v, fits = storedInstant(at), isInstant || isNumber || stored == nil
	case *AuditLevel:
		*v, fits = AuditLevel(text), isText
	case *string:
		*v, fits = text, isText
	}
	if !fits {
		return invalid(d.Name, fmt.Sprintf("the stored value %v (%T) is not %s", stored, stored, d.kind))
	}
	return nil
}

// storedBool returns a bool that a store may keep as 0 or 1.
func storedBool(stored any) (value, fits bool) {
	if number, isNumber := stored.(int64); isNumber {
		return number != 0, true
	}
	value, fits = stored.(bool)
	return value, fits
}

// maxMillis and maxDays are the most milliseconds and days that a time.Duration can hold.
const maxMillis, maxDays = int64(math.MaxInt64 / time.Millisecond), int64(math.MaxInt64 / day)

// Check returns the rule that the settings break, as an [ErrInvalid].
func (s Settings) Check() error {
	for _, d := range allSettings {
		if err := d.checkRange(&s); err != nil {
			return err
		}
	}
	return s.checkTogether()
}

// PausedAt reports whether the queue is paused at an instant.
func (s Settings) PausedAt(now time.Time) bool {
	return s.Paused && (s.PausedUntil.IsZero() || s.PausedUntil.After(now))
}

// storedInstant returns an instant as every store can keep it: UTC, in whole microseconds.
func storedInstant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// parseInstant reads an instant. The empty text is the zero instant.
func parseInstant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	return storedInstant(t), err
}

// ParseDuration reads the texts of time.ParseDuration, and whole days, such as 7d.
func ParseDuration(text string) (time.Duration, error) {
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%.60q is not a number of days", text)
		}
		if n > maxDays || n < -maxDays {
			return 0, fmt.Errorf("%.60q is more than a duration can hold, which is %d days", text, maxDays)
		}
		return time.Duration(n) * day, nil
	}
	return time.ParseDuration(text)
}

// FormatDuration writes a duration as [ParseDuration] reads it, such as 7d, 1h or 90s.
func FormatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	for _, unit := range []struct{ long, short string }{{"h0m0s", "h"}, {"m0s", "m"}} {
		if strings.HasSuffix(text, unit.long) {
			return strings.TrimSuffix(text, unit.long) + unit.short
		}
	}
	return text
}

// MarshalJSON writes the settings by their names, each value as people write it.
func (s Settings) MarshalJSON() ([]byte, error) { return json.Marshal(s.named()) }

// named returns the value of each setting by its name.
func (s Settings) named() map[string]any {
	named := make(map[string]any, len(allSettings))
	for _, d := range allSettings {
		named[d.Name] = d.Stored(s)
		if d.kind == kindDuration || d.kind == kindInstant || d.kind == kindRate {
			named[d.Name] = d.Format(s)
		}
	}
	return named
}

// UnmarshalJSON reads the text that [Settings.MarshalJSON] writes. Settings that the text does not name keep their
// value. Unknown names are ignored, so that an older program reads the audit of a newer one.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var named map[string]any
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	for _, d := range allSettings {
		if value, ok := named[d.Name]; ok {
			if number, isNumber := value.(float64); isNumber {
				value = strconv.FormatFloat(number, 'f', -1, 64)
			}
			if err := d.Parse(s, fmt.Sprint(value)); err != nil {
				return err
			}
		}
	}
	return nil
}
