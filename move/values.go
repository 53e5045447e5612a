package move

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
)

// The infinite instants, as stored in SQLite.
const (
	forEver = math.MaxInt64
	longAgo = math.MinInt64
)

// fromPostgres converts a PostgreSQL value into the form in transit.
func fromPostgres(c column, value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case [16]byte:
		return v[:], nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case float64:
		if c.kind == kindMillis {
			return int64(math.Round(v * 1000)), nil
		}
		return v, nil
	case time.Time:
		return v.UnixMicro(), nil
	case pgtype.InfinityModifier:
		if v == pgtype.Infinity {
			return int64(forEver), nil
		}
		return int64(longAgo), nil
	case int64, string, bool, []byte:
		return v, nil
	}
	return nil, fmt.Errorf("column %s holds a %T", c.name, value)
}

// toPostgres converts a value in transit into an argument for PostgreSQL.
func toPostgres(c column, value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	switch c.kind {
	case kindInstant:
		at := value.(int64)
		switch at {
		case forEver:
			return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, nil
		case longAgo:
			return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, nil
		}
		return time.UnixMicro(at).UTC(), nil
	case kindID, kindJob:
		return [16]byte(value.([]byte)), nil
	case kindIDs:
		var ids []sluice.ID
		if err := json.Unmarshal([]byte(value.(string)), &ids); err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
		raw := make([][16]byte, len(ids))
		for i, id := range ids {
			raw[i] = id
		}
		return raw, nil
	case kindMillis:
		return float64(value.(int64)) / 1000, nil
	}
	return value, nil
}

// fromLite converts a SQLite value into the form in transit. The column decides the type, because plain SQL can
// put any value into any column.
func fromLite(c column, value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	text, isText := value.(string)
	blob, isBlob := value.([]byte)
	number, isNumber := value.(int64)
	switch c.kind {
	case kindText, kindJSON, kindIDs:
		if isText {
			return text, nil
		}
	case kindInt, kindInstant, kindMillis:
		if isNumber {
			return number, nil
		}
	case kindBool:
		if isNumber {
			return number != 0, nil
		}
	case kindReal:
		if real, isReal := value.(float64); isReal || isNumber {
			if isNumber {
				real = float64(number)
			}
			return real, nil
		}
	case kindJob:
		if isBlob && len(blob) == 1 {
			return nil, fmt.Errorf("column %s names a job that is not stored; run `sluice upkeep --once` on the source first", c.name)
		}
		if isBlob && len(blob) == 16 {
			return blob, nil
		}
	case kindID:
		if isBlob && len(blob) == 16 {
			return blob, nil
		}
	case kindBytes:
		if isBlob {
			return blob, nil
		}
		if isText {
			return []byte(text), nil
		}
	}
	return nil, fmt.Errorf("column %s holds a %T that does not belong there", c.name, value)
}

// toLite converts a value in transit into an argument for SQLite. The caller looks up a job's seq.
func toLite(value any) any {
	switch given := value.(type) {
	case bool:
		if given {
			return int64(1)
		}
		return int64(0)
	case []byte:
		if len(given) == 0 { // drivers write and read an empty blob as null
			return ""
		}
	}
	return value
}

// size is the approximate memory of a row, in bytes.
func size(values []any) int {
	sum := 0
	for _, value := range values {
		switch v := value.(type) {
		case string:
			sum += len(v)
		case []byte:
			sum += len(v)
		}
		sum += 16
	}
	return sum
}

// Sum is a checksum of rows, independent of their order.
type Sum struct {
	// Rows is how many rows there were.
	Rows int64
	high uint64
	low  uint64
}

// add adds a row.
func (s *Sum) add(t *table, values []any) {
	hash := sha256.New()
	for i, value := range values {
		var text []byte
		switch v := value.(type) {
		case nil:
			hash.Write([]byte{0})
			continue
		case int64:
			text = strconv.AppendInt(nil, v, 10)
		case float64:
			text = strconv.AppendFloat(nil, v, 'g', -1, 64)
		case bool:
			text = strconv.AppendBool(nil, v)
		case []byte:
			text = v
		case string:
			text = []byte(v)
			if k := t.columns[i].kind; k == kindJSON || k == kindIDs {
				text = plainJSON(text)
			}
		}
		var length [9]byte
		length[0] = 1
		binary.BigEndian.PutUint64(length[1:], uint64(len(text)))
		hash.Write(length[:])
		hash.Write(text)
	}
	sum := hash.Sum(nil)
	s.Rows++
	s.high += binary.BigEndian.Uint64(sum)
	s.low += binary.BigEndian.Uint64(sum[8:])
}

// String returns the sum as people compare it.
func (s Sum) String() string { return fmt.Sprintf("%d rows, %016x%016x", s.Rows, s.high, s.low) }

// plainJSON writes JSON in one form, because PostgreSQL sorts names and formats numbers in its own way.
func plainJSON(text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return text
	}
	plain, err := json.Marshal(plainNumbers(value))
	if err != nil {
		return text
	}
	return plain
}

func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		if number, err := v.Float64(); err == nil {
			if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
				return int64(number)
			}
			return number
		}
	}
	return value
}
