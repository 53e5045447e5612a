package move

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/audit"
)

// batchRows bounds, with batchBytes, what is in memory at once.
var batchRows = 2000

const (
	batchBytes = 8 << 20
	// callTimeout is the deadline of every statement, except where a whole table is counted.
	callTimeout = 5 * time.Minute
)

// row is one of a table, on its way.
type row struct {
	key    []any // as the store that it comes from has it
	values []any // of no store, in the order of the columns
}

// mark is what the source keeps of where it was moved to.
type mark struct {
	ID     string
	To     string
	At     time.Time
	Frozen bool // nothing changes there any more
	Done   bool // the target has all, and may be used
}

// state is what the target keeps of how far a move has come, in the same transactions as what it has got.
type state struct {
	ID    string
	From  string
	Table int       // the one that is being copied
	After []keyPart // its last row that was copied, as the source has it
	Rows  int64     // of this table that were copied
	Base  int64     // jobs without a place in an order are put behind this one in SQLite
}

// fresh reports whether nothing was copied yet.
func (s *state) fresh() bool { return s.Table == 0 && len(s.After) == 0 }

// kept reads what a store keeps of a move in a table of its own; nil where there is no such table.
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

// store is one end of a move. Its methods have deadlines of their own.
type store interface {
	// name tells people which it is, without a password, and tells it from others.
	name() string
	// columns lists the columns of all tables.
	columns(ctx context.Context) (map[string][]string, error)
	layout(t *table) layout
	// step is the last schema step that the store has had.
	step(ctx context.Context) (int, error)

	// count counts the rows of a table that are moved; any reports whether there is a row at all.
	count(ctx context.Context, t *table) (int64, error)
	any(ctx context.Context, t *table) (bool, error)
	// read gives the rows of a table behind a key, in order, as many as fit a batch.
	read(ctx context.Context, t *table, after []any) ([]row, error)
	// last is the highest place that a job of an order has.
	last(ctx context.Context) (int64, error)

	mark(ctx context.Context) (*mark, error)
	// shut refuses new jobs and new claims from now on. It may be called again.
	shut(ctx context.Context, m mark) error
	// claims counts the jobs that a holder has under a lease that runs, and names some of the holders.
	claims(ctx context.Context) (int64, []string, error)
	// freeze refuses every change from now on, unless jobs are claimed.
	freeze(ctx context.Context) (frozen bool, err error)
	// done notes that the target has all.
	done(ctx context.Context) error
	// reopen undoes shut and freeze.
	reopen(ctx context.Context) error

	state(ctx context.Context) (*state, error)
	// begin keeps others from using the target until end.
	begin(ctx context.Context, s state) error
	// write stores rows, and how far the move has come by that.
	write(ctx context.Context, t *table, rows []row, s state) error
	// settle sets what counts on behind the rows that were copied.
	settle(ctx context.Context) error
	// end lets everybody use the target. With an addition it begins the audit's chain, in the same transaction.
	end(ctx context.Context, chain *audit.Addition) error
	// seal is the last one of the audit's chain; nil: there is none.
	seal(ctx context.Context) (*sealed, error)

	close()
}

// keyPart is a column of a key, as it is written down.
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
