package stages

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Checker checks the payloads of validations by the schema of their preset, without a library of schemas: to load one takes
// a hook a third of its time. A queue that was given another schema is left to the workers, who have such a library.
type Checker struct{}

// Compile says whether a schema is that of the preset.
func (Checker) Compile(schema string) error {
	if schema != schemas[Validation.Name()] {
		return errors.New("the payload_schema of queue \"sanitize_ai_validation\" is not that of its preset, and a hook knows no other; a worker takes the event in")
	}
	return nil
}

// Check says whether a payload matches the schema of the preset.
func (c Checker) Check(schema string, payload []byte) error {
	if err := c.Compile(schema); err != nil {
		return err
	}
	var v Validate
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&v); {
	case err != nil:
		return err
	case !IsID(v.ConversationID):
		return errors.New("/conversation_id is neither a ULID nor a UUID")
	case !IsVersion(v.SanitizationVersion):
		return errors.New("/sanitization_version is not a version")
	}
	return nil
}
