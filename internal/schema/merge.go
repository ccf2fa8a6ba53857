package schema

// Merge is a document with a JSON merge patch applied, as RFC 7396 has it: a null takes a member
// away, and objects are merged. It may change the objects of the document.
func Merge(document any, patch map[string]any) map[string]any {
	object, _ := document.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			object[name] = Merge(object[name], value)
		default:
			object[name] = value
		}
	}
	return object
}
