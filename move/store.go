package move

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/audit"
)

// batchRows and batchBytes limit the rows in memory.
var batchRows = 2000

const (
	batchBytes = 8 << 20
	// callTimeout is the deadline of every statement, also of one that counts a whole table.
	callTimeout = 5 * time.Minute
)

// row is a row of a table in transit.
type row struct {
	key    []any // as in the store that it comes from
	values []any // in a form of no store, in the order of the columns
}

// mark is the source's record of the move.
type mark struct {
	ID     string
	To     string
	At     time.Time
	Frozen bool // the source accepts no more changes
	Done   bool // the target is complete and may be used
}

// of returns why a move does not have a store: another one has begun, or somebody has given this one up. It is checked in the
// transaction that writes, because the process may have stood still while somebody else went on.
func (m *mark) of(id string) error {
	switch {
	case m == nil || m.ID == "":
		return refused("somebody has given the move up")
	case m.ID != id:
		return refused("another move, to %s, has begun", m.To)
	}
	return nil
}

// mayReopen reports whether a move may reopen a store, or why the store stays closed. A store that refuses all changes reopens only
// if a person says so. If another move has the store, a move that ends has nothing to undo.
func (m *mark) mayReopen(id string, byPerson bool) (bool, error) {
	other := m.of(id)
	switch {
	case other != nil && byPerson:
		return false, other
	case m == nil || m.ID != id:
		return false, nil
	case m.Done:
		return false, refused("%s has all of the jobs by now: both stores would run them", m.To)
	case m.Frozen && !byPerson:
		return false, refused("the move is under way; run it again to go on, or give up with --reopen")
	}
	return true, nil
}

// state is the target's record of the move's progress, written in the same transactions as the rows.
type state struct {
	ID    string
	From  string
	Table int       // the table being copied
	After []keyPart // the key of its last copied row, as in the source
	Rows  int64     // copied rows of this table
	Base  int64     // jobs without a place in an order come after this seq in SQLite
}

// of returns why a move does not have a target.
func (s *state) of(id string) error {
	switch {
	case s == nil || s.ID == "":
		return refused("the target is another move's by now, or open")
	case s.ID != id:
		return refused("the target has a part of another move, from %s", s.From)
	}
	return nil
}

// text writes a state for its table.
func (s *state) text() string {
	text, _ := json.Marshal(s) // texts, numbers and instants
	return string(text)
}

// fresh reports whether no row was copied yet.
func (s *state) fresh() bool { return s.Table == 0 && len(s.After) == 0 }

// kept reads a store's record of a move from its own table; nil if the table is missing.
func kept[T any](ctx context.Context, s interface {
	one(ctx context.Context, into any, text string, args ...any) error
}, exists, query string,
) (*T, error) {
	var found bool
	if err := s.one(ctx, &found, exists); err != nil || !found {
		return nil, err
	}
	var text string
	if err := s.one(ctx, &text, query); err != nil {
		return nil, err
	}
	var value T
	return &value, json.Unmarshal([]byte(text), &value)
}

// store is one end of a move. Its methods set their own deadlines.
type store interface {
	// name identifies the store for people, without a password.
	name() string
	// columns lists the columns of all tables.
	columns(ctx context.Context) (map[string][]string, error)
	layout(t *table) layout
	// step returns the last schema step of the store.
	step(ctx context.Context) (int, error)

	// count counts the moved rows of a table. any reports whether the table has a row at all.
	count(ctx context.Context, t *table) (int64, error)
	any(ctx context.Context, t *table) (bool, error)
	// read returns a batch of a table's rows behind a key, in order.
	read(ctx context.Context, t *table, after []any) ([]row, error)
	// last returns the highest place of a job in an order.
	last(ctx context.Context) (int64, error)

	mark(ctx context.Context) (*mark, error)
	// shut makes the store refuse new jobs and new claims. A repeated call is allowed. A store that another move has is an
	// ErrRefused, here and below.
	shut(ctx context.Context, m mark) error
	// claims counts the jobs under running leases, and names some of their holders.
	claims(ctx context.Context) (int64, []string, error)
	// freeze makes the store refuse every change, unless jobs are claimed.
	freeze(ctx context.Context, id string) (frozen bool, err error)
	// done records that the target is complete.
	done(ctx context.Context, id string) error
	// reopen undoes shut; by a person, freeze too.
	reopen(ctx context.Context, id string, byPerson bool) error

	state(ctx context.Context) (*state, error)
	// begin keeps other processes from using the target until end. A target that another move has is an ErrRefused, here and
	// below.
	begin(ctx context.Context, s state) error
	// write stores rows and the progress of the move.
	write(ctx context.Context, t *table, rows []row, s state) error
	// settle sets the store's sequences behind the copied rows, and lets upkeep look at batches.
	settle(ctx context.Context) error
	// end opens the target for all processes, unless it is open. An addition begins the audit's chain in the same transaction.
	end(ctx context.Context, id string, chain *audit.Addition) error
	// seal returns the last seal of the audit's chain; nil: none.
	seal(ctx context.Context) (*sealed, error)

	close()
}

// keyPart is a column of a key in its stored form.
type keyPart struct {
	Text   *string    `json:",omitempty"`
	Number *int64     `json:",omitempty"`
	Bytes  *string    `json:",omitempty"` // hexadecimal
	At     *time.Time `json:",omitempty"`
}

func keyParts(key []any) ([]keyPart, error) {
	parts := make([]keyPart, len(key))
	for i, value := range key {
		switch v := value.(type) {
		case string:
			parts[i].Text = &v
		case int64:
			parts[i].Number = &v
		case int32:
			number := int64(v)
			parts[i].Number = &number
		case time.Time:
			parts[i].At = &v
		case [16]byte:
			text := hex.EncodeToString(v[:])
			parts[i].Bytes = &text
		case []byte:
			text := hex.EncodeToString(v)
			parts[i].Bytes = &text
		default:
			return nil, fmt.Errorf("a key holds a %T", value)
		}
	}
	return parts, nil
}

func keyOf(parts []keyPart) ([]any, error) {
	key := make([]any, len(parts))
	for i, part := range parts {
		switch {
		case part.Text != nil:
			key[i] = *part.Text
		case part.Number != nil:
			key[i] = *part.Number
		case part.At != nil:
			key[i] = *part.At
		case part.Bytes != nil:
			raw, err := hex.DecodeString(*part.Bytes)
			if err != nil {
				return nil, err
			}
			key[i] = raw
		}
	}
	return key, nil
}

// briefly gives one statement its deadline.
func briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}
