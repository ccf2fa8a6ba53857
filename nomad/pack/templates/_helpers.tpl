[[- /* value writes a value so that HCL reads back the same. */ -]]
[[- define "value" -]]
[[ . | toJson | replace "${" "$${" | replace "%{" "%%{" ]]
[[- end -]]
