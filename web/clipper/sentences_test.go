package clipper

import "testing"

const newModel = `{"model_name":"q","model_version":"1","labels":[],"input_type":"d","container_name":"NO_CONTAINER","model_data_path":"DEPRECATED","batch_size":-1}`

// TestSentences asks each request of a fresh system.
func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"add_app", `{"name":"c","input_type":"ints","default_output":"0","latency_slo_micros":20000,"extra":1}`, 200, "Successfully added application with name 'c'"},
		{"add_app", `{"name":"a","input_type":"ints","default_output":"0","latency_slo_micros":20000}`, 400, "application 'a' already exists"},
		{"add_app", `{"name":"c","input_type":"Ints","default_output":"0","latency_slo_micros":20000}`, 400, `input type "Ints" is unknown: use bytes, ints, floats, doubles, strings or chat`},
		{"add_app", `{"name":"c","input_type":"ints","default_output":"0","latency_slo_micros":-1}`, 400, `app "c": latency_slo_micros must be between 100 and 600000000`},
		{"add_app", `{"name":"../x","input_type":"ints","default_output":"0","latency_slo_micros":20000}`, 400, `app name "../x": use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit`},
		{"add_app", `{"name":"admin","input_type":"ints","default_output":"0","latency_slo_micros":1}`, 400, `app name "admin" is reserved; app "admin": latency_slo_micros must be between 100 and 600000000`},
		{"delete_app", `{"name":"a"}`, 200, "Successfully deleted application with name 'a'"},
		{"delete_app", `{"name":"c"}`, 400, "Application 'c' does not exist"},

		{"add_model", newModel, 200, "Successfully added model with name 'q' and input type 'doubles'"},
		{"add_model", with(newModel, `:-1`, `:0`), 400, "The batch size must be positive or DEFAULT_BATCH_SIZE, which is -1"},
		{"add_model", with(newModel, `:-1`, `:70000`), 400, `model "q" version "1": batch max_size must be between 0 (no cap) and 65536`},
		{"add_model", with(newModel, `"d"`, `"double "`), 400, `input type "double " is unknown: use bytes, ints, floats, doubles, strings or chat`},
		{"add_model", with(newModel, `"q"`, `"q:r"`), 400, "Invalid model name supplied: q:r. Contains one of: ',', ':'"},
		{"add_model", with(newModel, `"1"`, `"1,2"`), 400, "Invalid model version supplied: 1,2. Contains one of: ',', ':'"},
		{"add_model", with(newModel, `[]`, `["x","y:"]`), 400, "Invalid label supplied: y:. Contains one of: ',', ':'"},
		{"add_model", with(newModel, `"q"`, `"Q"`), 400, `model name "Q": use 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit`},
		{"add_model", with(newModel, `"q"`, `"m"`), 400, "model with name 'm' and version '1' already exists"},
		{"add_model", with(with(newModel, `"q","model_version":"1"`, `"m","model_version":"3"`), `"d"`, `"i"`), 400,
			"Model with name 'm' is already linked to app 'a' using input type 'doubles'. The input type you provided for a new version of the model, 'integers', is not compatible."},

		{"add_model_links", `{"app_name":"a","model_names":["n"]}`, 200, "Successfully linked model with name 'n' to application 'a'"},
		{"add_model_links", `{"app_name":"c","model_names":["n"]}`, 400, "No app with name 'c' exists."},
		{"add_model_links", `{"app_name":"a","model_names":["q"]}`, 400, "No model with name 'q' exists."},
		{"add_model_links", `{"app_name":"a","model_names":["s"]}`, 400, "Model with name 's' has incompatible input_type 'strings'. Requested app to link to has input_type 'doubles'."},
		{"add_model_links", `{"app_name":"a","model_names":[]}`, 400, "Please provide the name of the model that you want to link to the application 'a'"},
		{"add_model_links", `{"app_name":"a","model_names":["m"]}`, 400, "The model with name 'm' is already linked to 'a'"},
		{"add_model_links", `{"app_name":"a","model_names":["n","n"]}`, 400, "The model with name 'n' is already linked to 'a'"},
		{"delete_model_links", `{"app_name":"a","model_names":["m","m"]}`, 200, "Success!"},
		{"delete_model_links", `{"app_name":"a","model_names":[]}`, 200, "Success!"},
		{"delete_model_links", `{"app_name":"c","model_names":[]}`, 400, "No app with name c exists."},
		{"delete_model_links", `{"app_name":"a","model_names":["m","n"]}`, 400, "Cannot remove nonexistent link between app a and model n"},

		{"set_model_version", `{"model_name":"m","model_version":"1"}`, 200, "Successfully set model with name 'm' to version '1'"},
		{"set_model_version", `{"model_name":"q","model_version":"1"}`, 400, "Cannot set version for nonexistent model 'q'"},
		{"set_model_version", `{"model_name":"m","model_version":"3"}`, 400, "Cannot set non-existent version '3' for model with name 'm'"},
		{"delete_versioned_model", `{"model_name":"m","model_version":"1"}`, 200, "Successfully deleted model with name 'm' and version '1'"},
		{"delete_versioned_model", `{"model_name":"m","model_version":"3"}`, 400, "model with name 'm' and version '3' does not exist"},

		{"get_all_applications", `{"verbose":false}`, 200, `["a","b"]`},
		{"get_all_applications", `{"verbose":true}`, 200, `[{"input_type":"doubles","default_output":"\"x\"\u003c","latency_slo_micros":100000,"name":"a","linked_models":["m"]},` +
			`{"input_type":"strings","default_output":"","latency_slo_micros":20000,"name":"b","linked_models":[]}]`},
		{"get_application", `{"name":"b"}`, 200, `{"input_type":"strings","default_output":"","latency_slo_micros":20000,"name":"b","linked_models":[]}`},
		{"get_application", `{"name":"c"}`, 200, `{}`},
		{"get_linked_models", `{"app_name":"a"}`, 200, `["m"]`},
		{"get_linked_models", `{"app_name":"b"}`, 200, `[]`},
		{"get_linked_models", `{"app_name":"c"}`, 400, "No application with name 'c' exists."},
		{"get_all_models", `{"verbose":false}`, 200, `["m:1","m:2","n:1","s:1"]`},
		{"get_model", `{"model_name":"m","model_version":"1"}`, 200, `{"model_name":"m","model_version":"1","input_type":"doubles","labels":[],"container_name":"NO_CONTAINER","model_data_path":"DEPRECATED","is_current_version":false}`},
		{"get_model", `{"model_name":"m","model_version":"3"}`, 200, `{}`},
		{"get_all_containers", `{"verbose":false}`, 200, `[]`},
		{"get_all_containers", `{"verbose":true}`, 200, `[]`},
		{"get_container", `{"model_name":"m","model_version":"1","replica_id":0}`, 200, `{}`},
		{"get_state", `{"app_name":"a","uid":7}`, 200, `"x"<`},
		{"get_state", `{"app_name":"c","uid":0}`, 200, ``},
	} {
		if status, text := post(handler(having(t), nobody), tt.name, tt.body); status != tt.status || text != tt.says {
			t.Errorf("%s %s:\n got %d %s\nwant %d %s", tt.name, tt.body, status, text, tt.status, tt.says)
		}
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	h := handler(&memory{cat: emptyCatalog()}, nobody)
	for _, name := range []string{"get_all_applications", "get_all_models", "get_all_containers"} {
		for _, body := range []string{`{"verbose":true}`, `{"verbose":false}`} {
			if status, text := post(h, name, body); status != 200 || text != "[]" {
				t.Errorf("%s %s: %d %s", name, body, status, text)
			}
		}
	}
}
