package storing

import "encoding/json"

// Result returns a result as an SQL store keeps it. An empty text says that upkeep has removed the result.
func Result(stored []byte) (result json.RawMessage, removed bool) {
	if len(stored) > 0 {
		return stored, false
	}
	return nil, stored != nil
}
