SELECT {tag_as:t.fleet}, {tag_as:t.model}, {number_as:t.load_capacity}, avg(d.avg_load / {number:t.load_capacity}) AS avg_load_percentage
		FROM tags t
		INNER JOIN (
			SELECT tags_id, avg(current_load) AS avg_load
			FROM diagnostics d
			GROUP BY tags_id
			) d ON t.id = d.tags_id
		WHERE {tag:t.name} IS NOT NULL
		GROUP BY fleet, model, load_capacity
