{% if maintenance_work_mem %}
set maintenance_work_mem = {{ maintenance_work_mem | literal }};
{% endif %}
